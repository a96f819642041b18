"""The curves swing because few samples are behind each point; the updates are fine."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen

SWING = 0.06  # step-to-step std of a share; 64 samples at one half give 0.0625 by the binomial law
CLIP_FINE = 0.10
GRADIENT_STEADY = 2.5


@failure(family="benign", stage="benign")
def small_batch_noise(facts: Facts) -> Verdict:
    """Need: acc (or a reward in 0..1) swings, clip and gradient norm normal (seed 003, pair D)."""
    success = facts.success_level
    if success is None:
        facts.need_level("acc")
    assert success is not None
    clip, gradient = facts.level("clip_frac"), facts.shape("grad_norm")
    if facts.few or success.noise < SWING:
        return ruled_out(seen(facts, facts.success_role, "against", "calm", success))
    if clip is not None and clip.after >= CLIP_FINE:
        return ruled_out(seen(facts, "clip_frac", "against", "clip-high"))
    if (
        gradient is not None
        and gradient.after > GRADIENT_STEADY * max(gradient.before, 1e-9)
        and gradient.rose
    ):
        return ruled_out(seen(facts, "grad_norm", "against", "gradient-high"))
    p = float(np.clip(np.mean(success.values), 0.05, 0.95))
    samples = p * (1 - p) / max(success.noise, 1e-6) ** 2
    return benign(
        None,
        seen(
            facts,
            facts.success_role,
            "for",
            "swings",
            success,
            noise=success.noise,
            samples=samples,
        ),
    )
