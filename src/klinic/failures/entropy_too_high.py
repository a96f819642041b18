"""Entropy is high from the first step on and stays there while nothing is learnt."""

from __future__ import annotations

from klinic.curves.shape import Shape
from klinic.facts import SOME, Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    early,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)

HOT = 2.0  # nats/token; 2.0 came with a loss of performance (rllm #116). Labelled healthy runs lie between 0.05 and 1.9.
EXPLOSION = 1.5  # of the own early level: then it rose, and entropy-explosion judges it
FULL = 0.8  # share of right answers at which a hot policy does its work
STILL = 1e-3  # nats/token to the reference: no-learning's limit
BROKEN = 0.2  # share of answers out of format, or in loops, that random text makes (our choice)
GROUPS = 0.5  # zero-variance share from which most questions teach nothing


@failure(
    family="exploration",
    stage="step",
    explains="plateau",
    treatments=(
        set_knob("entropy_coef", to=0.0, only_if="bonus"),
        set_knob("clip_high", to=0.2, only_if="high-clip"),
        set_knob("temperature", add=-0.1),
        Treatment("inspect", "advantages"),
    ),
)
def entropy_too_high(facts: Facts) -> Verdict:
    """Need: entropy above 2 nats from start to end, neither reward nor acc rising. Veto: it rose there, or it pays."""
    (entropy,) = facts.need_level("entropy")
    if facts.n < SOME or entropy.lowest < HOT:
        return ruled_out(seen(facts, "entropy", "against", "not-hot"))
    if entropy.rose and entropy.after >= EXPLOSION * entropy.before:
        return ruled_out(seen(facts, "entropy", "against", "rose"))
    reward, success = facts.shape("reward"), facts.success
    if reward is None and success is None:
        facts.need("reward")
    if (reward is not None and reward.rose) or (success is not None and success.rose):
        return ruled_out(seen(facts, "reward", "against", "pays"))
    if entropy.fell or ((full := facts.success_level) is not None and full.after >= FULL):
        return ruled_out(seen(facts, "entropy", "against", "cools"))
    return present(
        "caution",
        early(facts),
        seen(facts, "entropy", "for", "hot"),
        seen(facts, "reward", "for", "nothing-gained")
        if reward is not None
        else seen(facts, facts.success_role, "for", "nothing-gained", success),
        *_why(facts),
    )


def _why(facts: Facts) -> list[Evidence]:
    """Which of seed 001's four reasons the log shows (section 4.3), and what random text breaks."""
    found: list[Evidence] = []
    bonus = facts.shape("entropy_coef")
    coef = bonus.after if bonus is not None else facts.number("entropy_coef") or 0.0
    temperature = facts.number("temperature")
    kl, zero = facts.level("kl"), facts.shape("zero_std")
    if coef > 0:
        found.append(Evidence("entropy", "for", "bonus", values={"coef": coef}))
    if temperature is not None and temperature > 1:
        found.append(Evidence("entropy", "for", "temperature", values={"temperature": temperature}))
    if kl is not None and kl.highest < STILL:
        found.append(seen(facts, "kl", "for", "kl-still"))
    if zero is not None and zero.after >= GROUPS:
        found.append(seen(facts, "zero_std", "for", "signal-weak"))
    for role, bad in (("format_error", _high), ("format_ok", _low), ("repetition", _high)):
        shape = facts.shape(role)
        if shape is not None and bad(shape):
            found.append(seen(facts, role, "for", f"{role.replace('_', '-')}-bad"))
            break
    return found


def _high(shape: Shape) -> bool:
    return shape.after >= BROKEN


def _low(shape: Shape) -> bool:
    return shape.after <= 1 - BROKEN
