"""Metrics that follow from others: adv_std and the share of zero-variance groups; entropy by position in three parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from klinic.median import median
from klinic.run import Curve, Metric, Setting, Trainer
from klinic.vitals import players

# Advantages divided by the group's std: below this the early level comes from something else (science.md 2.3:
# un-normalised lab runs start at 0.39 to 0.49).
NORMALISED_FROM = 0.6
DDOF_ONE = {"trl", "verl"}  # torch.std divides by G - 1 (science.md finding 3)
BY_POSITION = "entropy_by_position/"
MIDDLE = (0.25, 0.75)  # of the response: the chain of thought, without its opening and its ending


def derived(
    curves: dict[str, Curve], config: Mapping[str, Setting], trainer: Trainer
) -> dict[str, Curve]:
    """Add adv_std from the share of zero-variance groups and back, where the identity holds (science.md finding 3),
    and entropy at the opening, in the middle and at the end, where it is logged by position."""
    curves = {**_entropy_at(curves), **curves}
    adv, zero = players("adv_std", curves), players("zero_std", curves)
    scaling = config.get("advantage_scaling")
    if scaling is not None and str(scaling.value).lower() in ("none", "false", "batch", "no"):
        return curves
    size = config.get("group_size")
    group = (
        size.value
        if size is not None and isinstance(size.value, int | float) and size.value > 1
        else None
    )
    cap = float(np.sqrt((group - 1) / group)) if group and trainer.name in DDOF_ONE else 1.0
    if zero and not adv:
        source = curves[zero[0]]
        values = np.sqrt(np.clip(1 - source.values, 0, 1)) * cap
        how = f"sqrt(1 - zero-variance share){f' * {cap:.3f} for groups of {group:g}' if cap < 1 else ''}"
        metric = Metric(
            "adv_std/from_zero_std",
            "std of group-normalised advantages, derived",
            "1",
            source.metric.source_key,
            how,
            (source.metric.name,),
        )
        return {**curves, metric.name: Curve(metric, source.steps, values)}
    if (
        adv
        and not zero
        and not players("value_loss", curves)
        and _is_group_normalised(curves, adv[0])
    ):
        source = curves[adv[0]]
        values = np.clip(1 - np.square(source.values / cap), 0, 1)
        metric = Metric(
            "groups/from_adv_std",
            "share of groups without variance, derived",
            "share",
            source.metric.source_key,
            "1 - adv_std^2",
            (source.metric.name,),
        )
        return {**curves, metric.name: Curve(metric, source.steps, values)}
    return curves


def _entropy_at(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """The first part, the mean of the middle ones and the last one. Seed 001 section 4.5 reads the three apart."""
    parts = {
        int(name.removeprefix(BY_POSITION)): curve
        for name, curve in curves.items()
        if name.startswith(BY_POSITION) and name.removeprefix(BY_POSITION).isdigit()
    }
    count = len(parts)
    if count < 3 or sorted(parts) != list(range(count)):
        return {}
    inner = [
        parts[i]
        for i in range(1, count - 1)
        if MIDDLE[0] <= (i + 0.5) / count <= MIDDLE[1]
        and np.array_equal(parts[i].steps, parts[0].steps)
    ]
    found = {"start": [parts[0]], "middle": inner, "end": [parts[count - 1]]}
    return {f"entropy_at/{place}": _mean_of(place, of) for place, of in found.items() if of}


def _mean_of(place: str, parts: Sequence[Curve]) -> Curve:
    names = tuple(part.metric.name for part in parts)
    metric = Metric(
        f"entropy_at/{place}",
        f"entropy at the {place} of the response, from its equal parts",
        "nats/token",
        parts[0].metric.source_key,
        "mean of parts" if len(parts) > 1 else None,
        names,
    )
    return Curve(metric, parts[0].steps, np.mean([part.values for part in parts], axis=0))


def _is_group_normalised(curves: Mapping[str, Curve], name: str) -> bool:
    values = curves[name].values[np.isfinite(curves[name].values)]
    if not len(values):
        return False
    early = float(median(values[: max(8, len(values) // 8)]))
    spread = players("reward_std", curves)
    if spread:
        other = curves[spread[0]].values
        other = other[np.isfinite(other)]
        # Without the division the std of the advantages is the std of the rewards.
        if len(other) == len(values) and median(np.abs(other - values)) < 0.1 * max(
            1e-9, float(median(values))
        ):
            return False
    return NORMALISED_FROM <= early <= 1.5 or len(values) < 8
