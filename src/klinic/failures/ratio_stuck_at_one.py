"""The importance ratio is exactly 1 although each batch is used several times."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen

EXACT = 1e-6  # a measured ratio never is exactly 1 after an update
ROWS = 20  # rows in a row (failure_modes.json)
STILL = 1e-4  # nats/token to the reference: a policy that does not move has a ratio of 1 (see no-learning)


@failure(
    family="implementation",
    stage="implementation",
    treatments=(Treatment("fix-code", "old_logprobs"),),
    explains="no-learning",
)
def ratio_stuck_at_one(facts: Facts) -> Verdict:
    """Need: several updates a batch, and ratio 1 or clip 0 on every row. Veto: one update a batch."""
    updates = facts.number("updates_per_batch")
    ratio, clip = facts.level("ratio_mean"), facts.shape("clip_frac")
    if ratio is None and clip is None and not facts.is_absent("clip_frac"):
        facts.need_level("ratio_mean", "clip_frac")
    if updates is None or updates <= 1:
        return ruled_out(seen(facts, "ratio_mean", "against", "one-update"))
    kl = facts.level("kl")
    if kl is not None and kl.highest < STILL:
        return ruled_out(seen(facts, "kl", "against", "policy-still"))
    stuck = ratio is not None and ratio.n >= ROWS and bool(np.all(np.abs(ratio.values - 1) < EXACT))
    unclipped = clip is not None and clip.n >= ROWS and bool(np.all(clip.values == 0))
    if (stuck and (clip is None or unclipped)) or (ratio is None and unclipped):
        return present(
            "act" if stuck else "caution",
            early(facts),
            seen(
                facts,
                "ratio_mean" if stuck else "clip_frac",
                "for",
                "exactly-one",
                updates=round(updates),
            ),
        )
    return ruled_out(
        seen(facts, "ratio_mean" if ratio is not None else "clip_frac", "against", "moves")
    )
