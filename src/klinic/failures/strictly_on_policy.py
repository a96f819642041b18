"""Ratio 1 and clip fraction 0 by construction: one update a batch."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Verdict, benign, early, failure, ruled_out, seen

EXACT = 1e-6
SHOWN = 5e-4  # a loss below this prints as 0.0 or 0.000: group advantages sum to 0, so only beta * KL is left


@failure(family="benign", stage="benign")
def strictly_on_policy(facts: Facts) -> Verdict:
    """Need: clip 0 or ratio 1 on every row, and one update a batch or nothing that says otherwise."""
    ratio, clip = facts.level("ratio_mean"), facts.shape("clip_frac")
    updates = facts.number("updates_per_batch")
    zero = facts.is_absent("clip_frac") or (clip is not None and bool(np.all(clip.values == 0)))
    one = ratio is not None and bool(np.all(np.abs(ratio.values - 1) < EXACT))
    if (zero or one) and (updates is None or updates <= 1):
        return benign(early(facts), seen(facts, "clip_frac", "for", "by-construction"))
    loss, gradient, spread = (facts.level(r) for r in ("loss", "grad_norm", "reward_std"))
    shown = loss is not None and bool(np.all(np.abs(loss.values) < SHOWN))
    if shown and gradient is not None and gradient.before > 0 and gradient.after > 0:
        if spread is None or spread.after > 0:
            return benign(
                early(facts),
                seen(facts, "loss", "for", "loss-shown-zero"),
                seen(facts, "grad_norm", "for", "gradient-there"),
            )
    if clip is None and ratio is None and not zero:
        facts.need("clip_frac")
    return ruled_out(seen(facts, "clip_frac", "against", "clips"))
