"""The policy leaves the reference within a few steps, and not for the better."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import Facts
from klinic.failures import Verdict, failure, present, ruled_out, seen, set_knob

SURGE = 6.0  # times its own level within the window (failure_modes.json)
WINDOW = 0.15  # share of the run
FROM = 0.01  # nats/token; KL starts at 0, so a quotient means something only above this
FAR = 0.3  # nats/token that a surge must reach
SWEPT = 30.0  # times its own early level, whatever the pace, where reward is lost and entropy risen
SHARPENED = 0.4  # of the early entropy: a KL that rises while the policy sharpens is part of that (science.md D5)
GONE = 3.0  # nats/token token mean: outside any healthy run seen (lab 3.1 to 6.8; healthy at most 0.2, TRL tiny 1.1)


@failure(
    family="step size",
    stage="step",
    explains="reward-collapse entropy-explosion entropy-collapse truncation-rise length-explosion eval-regression lr-too-high "
    "plateau nan format-collapse repetition language-mixing refusal-rise factuality-drop",
    treatments=(
        set_knob("kl_coef", to=0.005),
        set_knob("lr", scale=0.5),
        set_knob("updates_per_batch", to=1, only_if="several-updates"),
    ),
)
def kl_runaway(facts: Facts) -> Verdict:
    """Need: a surge of KL that stays, with reward or acc lost or entropy risen. Veto: a slow rise with a gain."""
    (kl,) = facts.need("kl")
    metric = facts.metric("kl")
    per_token = metric is not None and "seq_sum" not in metric.name
    known = facts.level("kl") is not None  # else only the shape counts
    if facts.few or not kl.rose:
        return ruled_out(seen(facts, "kl", "against", "kl-slow"))
    at = _surge(kl)
    success, reward, entropy = facts.success, facts.shape("reward"), facts.shape("entropy")
    lost = (success is not None and success.fell) or (reward is not None and reward.fell)
    hot = entropy is not None and entropy.after >= 1.3 * entropy.before and entropy.rose
    stuck = success is not None and not success.rose
    gone = per_token and known and kl.after >= GONE
    if at is None and per_token and lost and hot and kl.after >= SWEPT * max(kl.before, FROM):
        at = kl.onset
    if not gone and not (
        at is not None
        and (kl.after >= FAR or not known)
        and (lost or hot or (stuck and known and kl.after >= 1))
    ):
        return ruled_out(seen(facts, "kl", "against", "kl-slow"))
    cold = entropy is not None and entropy.fell and entropy.after <= SHARPENED * entropy.before
    bonus = facts.number("entropy_coef") or 0.0
    if hot and bonus > 0:
        return ruled_out(seen(facts, "entropy", "against", "bonus-drives", coef=bonus))
    if cold and not lost:
        return ruled_out(seen(facts, "entropy", "against", "sharpens"))
    return present(
        "stop" if lost or hot or gone else "act",
        kl.onset if at is None else _first(kl, at),
        seen(facts, "kl", "for", "kl-surge"),
        seen(facts, "entropy", "for", "entropy-up") if hot else None,
        seen(facts, facts.success_role, "for", "acc-lost", success)
        if success is not None and lost
        else None,
        sure=gone and (lost or hot),
    )


def _surge(kl: Shape) -> Onset | None:
    """Where the level becomes six-fold within 15 % of the run and stays there."""
    level = np.maximum(kl.smooth, FROM)
    reach = max(2, int(WINDOW * len(level)))
    if len(level) <= reach:
        return None
    growth = level[reach:] / level[:-reach]
    i = int(np.argmax(growth))
    if growth[i] < SURGE or kl.after < 0.3 * kl.highest:
        return None
    at = kl.smooth_steps
    return Onset(int(at[i]), int(at[max(0, i - 2)]), int(at[min(len(at) - 1, i + reach // 2)]))


def _first(kl: Shape, surge: Onset) -> Onset:
    """The broken line where it agrees with the surge, else the surge's own beginning."""
    line = kl.onset
    return line if line is not None and surge.low - 5 <= line.step <= surge.high + 5 else surge
