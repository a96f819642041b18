"""What is done to logged numbers so that two trainers' mean the same; the fields are explained in generic.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from klinic.median import median
from klinic.run import NOT_COMPARABLE, Metric, Setting
from klinic.sources.rows import Column
from klinic.trainers import Table

BESIDE = ("over:", "minus:", "at_cap:")  # read another key of the same log
COUNTS = ("count_of:", "counts_of:")  # need the number of what is counted

# name -> (what becomes of the numbers, how it is said)
PLAIN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "percent": (lambda values: values / 100, "percent to share"),
    "negate": (lambda values: -values, "sign turned"),
    "square": (np.square, "squared: the log has the root"),
    "complement": (lambda values: 1 - values, "1 minus the value"),
    "minus_one": (lambda values: values - 1, "1 subtracted"),
    "double": (lambda values: values * 2, "doubled"),
    "halve": (lambda values: values / 2, "halved"),
}


def converted(metric: Metric, how: str) -> Metric:
    """The metric, saying one more thing that was done to it."""
    return replace(metric, conversion=f"{metric.conversion}; {how}" if metric.conversion else how)


def apply(
    kind: str, values: Any, metric: Metric, config: Mapping[str, Setting], table: Table
) -> tuple[Any, Metric]:
    """One conversion of values: (n,); no values where it needs a number that the run does not state.

    Raises ValueError for a conversion that does not exist.
    """
    if kind in PLAIN:
        change, how = PLAIN[kind]
        return change(values), converted(metric, how)
    name, _, knob = kind.partition(":")
    by = _positive(config.get(knob))
    if name == "negate_divide":
        if by is not None:
            return -values / by, converted(metric, f"sign turned, divided by {knob}")
        # Unless the run states it, the trainer's default is assumed: what the curve does over time holds anyway.
        rule_of = table.knob.get(knob)
        assumed = rule_of.default if rule_of is not None else None
        by = float(assumed) if isinstance(assumed, int | float) and assumed > 0 else 1.0
        return -values / by, converted(metric, NOT_COMPARABLE)
    if name == "per_update":
        # Only where minibatches were counted: passes over the batch alone are not its updates.
        stated = config.get("updates_per_batch")
        by = _positive(stated) if stated is not None and stated.own is not None else None
        if by is None:
            return values, converted(metric, NOT_COMPARABLE)
        return values / by, converted(metric, f"sum divided by {by:g} updates a batch")
    if f"{name}:" in COUNTS:
        if by is None:
            return values[:0], metric  # a count of unknown how many is no share
        return values / by, converted(metric, f"count divided by {knob}")
    raise ValueError(f"unknown conversion {kind!r} for {metric.source_key}")


def beside(
    kind: str,
    steps: Any,
    values: Any,
    metric: Metric,
    columns: Mapping[str, Column],
    points: Callable[[Column], tuple[Any, Any]],
) -> tuple[Any, Any, Metric]:
    """over:KEY divides by, minus:KEY subtracts another key of the log, at the steps where both are logged.

    at_cap:KEY says that a share counts what is as wide as its batch (verl pads to the longest answer since 0.9): it is a
    share of truncated answers only where the longest, KEY, reaches the cap. The cap is the largest value of KEY that
    stands there more than once.
    """
    name, _, other = kind.partition(":")
    if other not in columns:
        if name == "at_cap":
            return steps, values, converted(metric, NOT_COMPARABLE)
        return steps[:0], values[:0], metric
    other_steps, other_values = points(columns[other])
    both, mine, theirs = np.intersect1d(steps, other_steps, return_indices=True)
    if name == "minus":
        return both, values[mine] - other_values[theirs], converted(metric, f"minus {other}")
    if name == "at_cap":
        return (*_at_cap(steps, values, both, mine, other_values[theirs], metric, other),)
    total = other_values[theirs]
    some = total > 0
    return both[some], values[mine][some] / total[some], converted(metric, f"divided by {other}")


def _at_cap(
    steps: Any, values: Any, both: Any, mine: Any, longest: Any, metric: Metric, other: str
) -> tuple[Any, Any, Metric]:
    if not len(both) or np.any(values == 0):
        return steps, values, metric  # padded to the cap itself: 0 is never logged otherwise
    widths, times = np.unique(longest[np.isfinite(longest)], return_counts=True)
    full = (
        longest == widths[-1]
        if len(widths) and times[-1] > 1
        else np.zeros(len(longest), dtype=bool)
    )
    if full.all():
        return steps, values, metric
    return (
        both,
        np.where(full, values[mine], 0.0),
        converted(metric, f"0 where {other} is below the cap"),
    )


def as_share(values: Any) -> bool:
    """Whether every finite value lies between 0 and 1."""
    finite = values[np.isfinite(values)]
    return bool(len(finite) and finite.min() >= 0 and finite.max() <= 1 + 1e-9)


def in_percent(values: Any) -> bool:
    """Whether a share is logged as 0 to 100 without a percent sign."""
    finite = values[np.isfinite(values)]
    return bool(
        len(finite) and finite.min() >= 0 and 1.5 < median(finite) <= 100 and finite.max() <= 100
    )


def _positive(setting: Setting | None) -> float | None:
    value = setting.value if setting is not None else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    return float(value)
