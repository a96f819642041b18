"""Responses grow towards the cap and nothing is gained by the length."""

from __future__ import annotations

import numpy as np

from klinic.curves.together import change_between
from klinic.facts import Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)
from klinic.median import median

GROWN = 1.4  # of the own early length (failure_modes.json)
TRUNC_ACT = 0.15  # share of truncated responses that must be handled (seed 000)
UNCUT = 0.10  # below it truncation is no matter (verl best_practices.rst:122)
SPARSE = 12  # points
TRUNC_RUIN = 0.5  # half of the answers are cut
ACC_FOLLOWS_Z = 3.0  # standard errors by which acc must rise to justify the length


@failure(
    family="length",
    stage="step",
    explains="truncation-rise reward-collapse zero-advantage kl-runaway too-hard "
    "entropy-explosion eval-regression plateau truncated-from-start format-collapse repetition",
    treatments=(
        Treatment("fix-reward", "reward", only_if="reward-pays"),
        set_knob("max_new_tokens", scale=2, only_if="truncates"),
        set_knob("loss_aggregation", to="dr_grpo"),
        Treatment("fix-reward", "length_penalty", restart="may"),
    ),
)
def length_explosion(facts: Facts) -> Verdict:
    """Need: length 1.4 times its early level, acc not rising with it. Support: truncation. Veto: acc rises along."""
    (length,) = facts.need("len")
    trunc, success, reward = facts.level("trunc"), facts.success, facts.shape("reward")
    share = length.after / max(length.before, 1e-9)
    cut = (
        trunc is not None
        and trunc.after >= TRUNC_ACT
        and trunc.after - trunc.before >= TRUNC_ACT / 2
    )
    fast = _fast(facts)
    grown = not facts.few and (fast or (length.rose and share >= GROWN))
    if not grown:
        return ruled_out(seen(facts, "len", "against", "length-steady", share=share))
    at = length.onset
    begin, end = (at.step if at else facts.run.first), facts.run.last
    progress = success
    if success is not None and success.n < SPARSE and reward is not None and reward.n >= SPARSE:
        progress = reward  # a handful of evaluations cannot say whether the length is used
    follow_z = change_between(progress, begin, end)[1] if progress is not None else None
    lost = success is not None and (
        success.fell or (follow_z is not None and follow_z < -ACC_FOLLOWS_Z)
    )
    pays = (
        reward is not None
        and facts.success_role == "acc"
        and change_between(reward, begin, end)[1] > 6
        and (follow_z or 0) < ACC_FOLLOWS_Z
    )
    if trunc is not None and trunc.after < UNCUT and progress is not None and share < 3:
        # Nothing is cut: if acc rose while the responses grew, a later fall has another cause.
        peak = float(progress.smooth_steps[int(np.argmax(progress.smooth))])
        if change_between(progress, begin, peak)[1] >= ACC_FOLLOWS_Z:
            return ruled_out(seen(facts, facts.success_role, "against", "acc-follows", success))
    if (
        follow_z is not None
        and follow_z >= ACC_FOLLOWS_Z
        and not (trunc is not None and trunc.after >= TRUNC_RUIN)
        and not lost
    ):
        return ruled_out(seen(facts, facts.success_role, "against", "acc-follows", success))
    if success is None and not cut and not (reward is not None and reward.fell):
        return present("caution", at, seen(facts, "len", "for", "length-up", share=share))
    ruin = lost or fast or (trunc is not None and trunc.after >= TRUNC_RUIN) or share >= 3
    return present(
        "stop"
        if ruin and (cut or lost or pays)
        else "act"
        if (cut or lost or pays or share >= 2)
        else "caution",
        at,
        seen(facts, "len", "for", "length-up", share=share),
        seen(facts, "trunc", "for", "cut") if cut else None,
        seen(facts, facts.success_role, "for", "acc-down" if lost else "acc-flat", success)
        if success is not None
        else None,
        seen(facts, "reward", "for", "reward-pays") if pays else None,
        _sum_only(facts),
        sure=share >= 2 and cut,
    )


def _sum_only(facts: Facts) -> Evidence | None:
    """KL per response grows with the length while KL per token stays (seed 001 sections 5.3 and 7.4)."""
    whole, kl = facts.shape("kl_seq"), facts.shape("kl")
    metric = facts.metric("kl")
    if whole is None or kl is None or metric is None or "seq_sum" in metric.name:
        return None
    return seen(facts, "kl_seq", "for", "kl-sum") if whole.rose and not kl.changed else None


def _fast(facts: Facts) -> bool:
    """To the cap within the first rows, so that the early window is sick already: the first three rows are the baseline."""
    length, trunc = facts.shape("len"), facts.level("trunc")
    if length is None or trunc is None or length.n < 12:
        return False
    start = float(median(length.values[:3]))
    return (
        length.after >= GROWN * start
        and trunc.after >= TRUNC_RUIN
        and float(trunc.values[0]) <= TRUNC_RUIN / 2
        and trunc.level_over(0.3, 1.0) >= TRUNC_RUIN
    )
