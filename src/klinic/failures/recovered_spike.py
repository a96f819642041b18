"""A curve left its place for some steps and came back by itself."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen
from klinic.median import median

AWAY = 5.0  # noise units of the excursion
BACK = 0.3  # of the excursion may be left at the end
ROLES_WATCHED = ("reward", "kl", "len", "trunc", "entropy", "grad_norm")


@failure(family="benign", stage="benign")
def recovered_spike(facts: Facts) -> Verdict:
    """Need: an excursion of five noise units in the middle, and the old level afterwards."""
    for role in ROLES_WATCHED:
        shape = facts.shape(role)
        if shape is None or shape.n < 12 or shape.changed:
            continue
        values = shape.scaled(shape.smooth)
        base = np.interp(
            np.linspace(0, 1, len(values)),
            [0, 1],
            [float(median(values[:3])), float(median(values[-3:]))],
        )
        away = np.abs(values - base)
        sigma = max(shape.standard_error(1), 1e-9)
        i = int(np.argmax(away))
        if (
            away[i] > AWAY * sigma
            and away[i] > shape.effect
            and 0.05 * len(values) < i < 0.85 * len(values)
            and away[-1] < BACK * away[i]
        ):
            first = int(shape.smooth_steps[int(np.flatnonzero(away > 0.5 * away[i])[0])])
            return benign(
                Onset(first, first, int(shape.smooth_steps[i])),
                seen(facts, role, "for", "came-back"),
            )
    if not any(facts.shape(role) for role in ROLES_WATCHED):
        facts.need("reward")
    return ruled_out(seen(facts, "reward", "against", "no-spike"))
