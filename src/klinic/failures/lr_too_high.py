"""Each step is too large: a fifth of the tokens hits the clip, with the ratio still at 1."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Verdict, early, failure, present, ruled_out, seen, set_knob

CLIPPED = 0.20  # share of tokens (seed 000)
RATIO_OFF = 0.05  # the mean ratio stays at 1 in this failure
GRADIENT = 4.0  # times the own early level
EVERY = 0.9  # share of rows above max_grad_norm: clipped on every step (seed 001 section 6.1)
WIDE = 1.5  # 99 % quantile of the ratio: twice as far out as a band of 0.2 with a little slack (seed 001 6.2)
WARN = 0.10  # token-level clipping worth a warning (science.md D9)
FAR = (
    0.3  # nats/token that a healthy run does not reach while it learns nothing (kl-runaway's limit)
)


@failure(
    family="step size",
    stage="step",
    explains="entropy-collapse reward-collapse kl-runaway plateau small-batch-noise "
    "no-learning zero-advantage eval-regression nan gradient-spike format-collapse repetition",
    treatments=(
        set_knob("lr", scale=0.5, restart="may"),
        set_knob("updates_per_batch", to=1, only_if="several-updates", restart="may"),
        set_knob("max_grad_norm", scale=0.5, restart="may"),
    ),
    restart="may",
)
def lr_too_high(facts: Facts) -> Verdict:
    """Need: clip fraction above 0.2 that stays, ratio near 1. Veto: sequence-level clipping, ratio off 1."""
    (clip,) = facts.need_level("clip_frac")
    ratio, gradient = facts.level("ratio_mean"), facts.shape("grad_norm")
    if str(facts.setting("importance_level") or "token") in ("sequence", "sequence_token", "gspo"):
        return ruled_out(seen(facts, "clip_frac", "against", "sequence-level"))
    success, kl = facts.success, facts.level("kl")
    stuck = success is not None and not success.rose
    far = kl is not None and kl.after >= FAR
    # Below the limit it counts only where the step shows elsewhere: nothing is learnt, and the policy is far away.
    steady = min(clip.before, clip.after) >= WARN and stuck and far
    if clip.after < CLIPPED and not steady:
        return ruled_out(seen(facts, "clip_frac", "against", "clip-low"))
    if ratio is not None and abs(ratio.after - 1) >= RATIO_OFF:
        return ruled_out(seen(facts, "ratio_mean", "against", "ratio-off"))
    strong = gradient is not None and (
        gradient.after >= GRADIENT * gradient.before or gradient.after > 3
    )
    wide, bound = facts.level("ratio_high"), facts.number("max_grad_norm") or 0.0
    bounded = gradient is not None and bound > 0 and np.mean(gradient.values > bound) >= EVERY
    at = early(facts) if steady or clip.before >= CLIPPED else clip.onset
    return present(
        "act",
        at,
        seen(facts, "clip_frac", "for", "clip-high"),
        seen(facts, "kl", "for", "kl-far") if far else None,
        seen(facts, facts.success_role, "for", "stuck", success) if stuck else None,
        seen(facts, "grad_norm", "for", "gradient-high") if strong else None,
        seen(facts, "grad_norm", "for", "every-step", bound=bound) if bounded else None,
        seen(facts, "ratio_high", "for", "ratio-wide")
        if wide is not None and wide.after >= WIDE
        else None,
        seen(facts, "ratio_mean", "for", "ratio-one") if ratio is not None else None,
    )
