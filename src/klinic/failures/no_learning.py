"""Reward, accuracy and KL stay where they were: the updates do nothing."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
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

KL_STILL = 1e-3  # nats/token; healthy runs pass it within 20 steps (lab.md section 4, seed 003: 0.045 at the end)
ROWS = 40  # as many as any verdict above possible needs (DESIGN.md 4.5)
NOTHING = 1e-4  # nats/token: a reward that rises at less than this is not explained by the policy (seed 001 section 3.1)
SMALL_LR = 1e-7  # no trainer's default is as small (TRL and verl: 1e-6; LoRA 1e-5 and more)
STRONG_KL = 0.1  # coefficient; defaults lie between 0.001 and 0.05
UNCLIPPED = 0.001  # clip fraction below which updates stay well inside the band (advise: nothing is clipped)
LONG = 200  # rows over which a reward that stands still says something without KL
FULL = 0.8  # share of right answers with little left to learn (zero-advantage's limit)
AGREE = 0.5  # zero-variance share from which most questions teach nothing


@failure(
    family="data",
    stage="implementation",
    explains="plateau",
    treatments=(
        set_knob("dynamic_sampling", to=True, only_if="often-zero"),
        Treatment("change-data", "mixed_data", only_if="often-zero"),
        Treatment("fix-code", "gradient_path", only_if="gradient-unseen"),
        # Three times a step that moves nothing still moves nothing (lab: 1e-7 where 7e-4 learns): decades.
        set_knob("lr", scale=10, why="lr_up"),
        set_knob("kl_coef", scale=0.3, why="kl_coef_down"),
        Treatment("fix-code", "gradient_path", only_if="gradient-arrives"),
    ),
)
def no_learning(facts: Facts) -> Verdict:
    """Need: reward flat, KL to the reference at its noise floor. Veto: KL or reward moved."""
    if facts.level("kl") is None and (thin := _thin(facts)):
        return present("caution", early(facts), *thin)
    (reward,), (kl,) = facts.need("reward"), facts.need_level("kl")
    acc, entropy = facts.shape("acc"), facts.shape("entropy")
    still = kl.highest < KL_STILL and kl.after < KL_STILL
    moved = (
        reward.changed
        or (acc is not None and acc.n >= 8 and acc.changed)
        or (entropy is not None and entropy.changed)
    )
    if facts.n >= ROWS and kl.highest < NOTHING and reward.rose:
        return ruled_out(seen(facts, "reward", "against", "rises-alone"))
    if facts.n < ROWS or not still or moved:
        return ruled_out(seen(facts, "kl", "against", "moves"))
    return present(
        "act",
        early(facts),
        seen(facts, "reward", "for", "reward-flat"),
        seen(facts, "kl", "for", "kl-still"),
        seen(facts, "entropy", "for", "entropy-flat") if entropy is not None else None,
        *_why(facts),
        sure=bool(np.max(kl.values) < KL_STILL),
    )


def _thin(facts: Facts) -> list[Evidence]:
    """Without KL: a long run whose reward and entropy stand still while at least half of the batches hold no gradient."""
    reward, entropy, zero, gradient = (
        facts.shape(role) for role in ("reward", "entropy", "zero_std", "grad_norm")
    )
    if reward is None or zero is None or gradient is None or facts.n < LONG:
        return []
    success = facts.success_level
    stands = not reward.changed and (entropy is None or not entropy.changed)
    if not stands or (success is not None and success.after >= FULL):
        return []
    if min(zero.before, zero.after) < AGREE or np.mean(gradient.values == 0) < AGREE:
        return []
    return [
        seen(facts, "reward", "for", "reward-flat"),
        seen(facts, "zero_std", "for", "often-zero", share=float(np.mean(gradient.values == 0))),
    ]


def _why(facts: Facts) -> list[Evidence]:
    """Which of the four causes the log shows: step too small, KL term too strong, reward too weak, or the gradient path."""
    found: list[Evidence] = []
    lr, gradient, clip, zero = (
        facts.level(role) for role in ("lr", "grad_norm", "clip_frac", "zero_std")
    )
    stated = facts.number("lr")
    rate = float(lr.values.max()) if lr is not None else stated
    if rate is not None and 0 < rate < SMALL_LR:  # 0 may be print precision
        found.append(Evidence("lr", "for", "lr-small", values={"lr": rate}))
    logged = facts.shape("kl_coef")
    coef = logged.after if logged is not None else facts.number("kl_coef")
    if coef is not None and coef >= STRONG_KL:
        found.append(Evidence("kl_coef", "for", "kl-strong", values={"coef": coef}))
    if zero is not None and zero.after >= AGREE:
        found.append(seen(facts, "zero_std", "for", "reward-weak"))
    if gradient is not None and gradient.after > 0:
        found.append(seen(facts, "grad_norm", "for", "gradient-arrives"))
    if clip is not None and clip.highest < UNCLIPPED:
        found.append(seen(facts, "clip_frac", "for", "steps-small"))
    return found
