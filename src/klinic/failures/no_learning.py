"""Reward, accuracy and KL stay where they were: the updates do nothing."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

KL_STILL = 1e-3  # nats/token; healthy runs pass it within 20 steps (lab.md section 4, seed 003: 0.045 at the end)
ROWS = 40


@failure(
    family="data",
    stage="implementation",
    explains="plateau",
    treatments=(
        Treatment("fix-code", "gradient_path"),
        set_knob("lr", scale=3),
        set_knob("kl_coef", scale=0.3),
    ),
)
def no_learning(facts: Facts) -> Verdict:
    """Need: reward flat, KL to the reference at its noise floor. Veto: KL or reward moved."""
    reward, kl = facts.need("reward", "kl")
    acc, entropy = facts.shape("acc"), facts.shape("entropy")
    still = kl.highest < KL_STILL and kl.after < KL_STILL
    moved = (
        reward.changed
        or (acc is not None and acc.n >= 8 and acc.changed)
        or (entropy is not None and entropy.changed)
    )
    if facts.n < ROWS or not still or moved:
        return ruled_out(seen(facts, "kl", "against", "moves"))
    return present(
        "act",
        early(facts),
        seen(facts, "reward", "for", "reward-flat"),
        seen(facts, "kl", "for", "kl-still"),
        seen(facts, "entropy", "for", "entropy-flat") if entropy is not None else None,
        sure=bool(np.max(kl.values) < KL_STILL),
    )
