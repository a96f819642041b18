"""No group differs any more, so no gradient is left; why is not logged."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

# Seed 003's adv_std bands (0.5, 0.3) as shares of zero-variance groups (science.md D1).
ACT, STOP = 0.75, 0.91
RIGHT = 0.8  # share of right answers at which agreeing groups mean easy data (failure_modes.json)


@failure(
    family="data",
    stage="outcome",
    explains="no-learning gradient-lost plateau",
    treatments=(
        Treatment("inspect", "rollouts"),
        Treatment("change-data", "mixed_data"),
        set_knob("dynamic_sampling", to=True),
    ),
)
def zero_advantage(facts: Facts) -> Verdict:
    """Need: zero-variance groups above 0.75 (act) or 0.91 (stop); else a reward without any spread on every row."""
    zero, spread = facts.shape("zero_std"), facts.shape("reward_std")
    if zero is None and spread is None:
        facts.need("zero_std")
    if zero is not None:
        if zero.after < ACT:
            return ruled_out(seen(facts, "zero_std", "against", "groups-differ"))
        success = facts.success_level
        fine = success is not None and success.after >= RIGHT
        at = zero.onset if zero.rose else early(facts)
        return present(
            "caution" if fine else "stop" if zero.after >= STOP else "act",
            at,
            seen(facts, "zero_std", "for", "groups-agree"),
            sure=zero.after >= STOP,
        )
    assert spread is not None
    if np.any(spread.values != 0):
        return ruled_out(seen(facts, "reward_std", "against", "groups-differ"))
    return present("act", early(facts), seen(facts, "reward_std", "for", "no-spread"), sure=True)
