"""The gradient norm shoots up: one batch, or the scale of everything behind it."""

from __future__ import annotations

import numpy as np

from klinic.curves.jumps import Spike, change_at, spikes
from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import SOME, Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    benign,
    early,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)
from klinic.median import median

TIMES = 5.0  # times the level around it (failure_modes.json: five times the rolling median)
SURE = 8.0  # noise units on the logarithm, as for a spike of KL
LOST = 6.0  # noise units by which the reward must lie lower after the spike than before
STAYS = 5.0  # times its own early level at the end: no spike any more
OUT = 2.0  # times the highest level the norm kept: a spike out of a dead curve alarms nobody
EVERY = 0.9  # share of rows above max_grad_norm: clipped on every step (seed 001 section 6.1)


@failure(
    family="step size",
    stage="step",
    explains="reward-collapse kl-spike nan recovered-spike",
    treatments=(
        Treatment("inspect", "spike_batch"),
        set_knob("max_grad_norm", scale=0.5, restart="may"),
        Treatment("fix-code", "precision"),
        Treatment("fix-reward", "reward_scale", restart="may"),
    ),
    restart="may",
)
def gradient_spike(facts: Facts) -> Verdict:
    """Need: a spike after which the reward is lost, a norm that grew and stays, or a bound hit on every step for nothing."""
    (gradient,) = facts.need("grad_norm")
    if facts.few:
        return ruled_out(seen(facts, "grad_norm", "against", "no-spike"))
    found = [s for s in spikes(gradient, TIMES, SURE) if s.top >= OUT * gradient.highest]
    reward, success = facts.shape("reward"), facts.success
    gained = (success is not None and success.rose) or (reward is not None and reward.rose)
    bound = facts.number("max_grad_norm") or 0.0
    for spike in found:
        if reward is not None and _lost(reward, spike):
            return present(
                "act",
                Onset(spike.first, spike.first, spike.last),
                _spike(facts, spike, len(found)),
                seen(facts, "reward", "for", "reward-lost"),
            )
    grown = facts.n >= SOME and gradient.rose and _grown(gradient)
    if grown and not gained:
        return present(
            "caution",
            gradient.onset,
            seen(facts, "grad_norm", "for", "stays-high"),
            seen(facts, "reward", "for", "nothing-gained") if reward is not None else None,
        )
    if bound > 0 and facts.n >= SOME and np.mean(gradient.values > bound) >= EVERY and not gained:
        return present(
            "caution",
            early(facts),
            seen(facts, "grad_norm", "for", "every-step", bound=bound),
            seen(facts, "reward", "for", "nothing-gained") if reward is not None else None,
        )
    if found and not grown:
        top = max(found, key=lambda spike: spike.height)
        return benign(
            Onset(top.first, top.first, top.last),
            _spike(facts, top, len(found)),
            Evidence("grad_norm", "for", "bounded", values={"bound": bound}) if bound > 0 else None,
        )
    return ruled_out(
        seen(facts, "grad_norm", "against", "grows-with-gain" if grown else "no-spike")
    )


def _spike(facts: Facts, spike: Spike, count: int) -> Evidence:
    return seen(
        facts,
        "grad_norm",
        "for",
        "spike",
        step=spike.first,
        times=spike.height,
        top=spike.top,
        count=count,
    )


def _grown(gradient: Shape) -> bool:
    """Whether the norm ends far above its early level; rows without a gradient (no group differs) do not count."""
    there = gradient.values[gradient.values > 0]
    window = max(8, len(there) // 8)
    if len(there) < 3 * window:
        return False
    return float(median(there[-window:])) >= STAYS * float(median(there[:window]))


def _lost(reward: Shape, spike: Spike) -> bool:
    """Whether the reward is lower from the row after on, and stays so to the end."""
    change, z = change_at(reward, spike.first + 1)
    before = reward.until(spike.first + 1)[-8:]
    return bool(
        change < 0 and z >= LOST and len(before) and reward.after <= median(before) + 0.7 * change
    )
