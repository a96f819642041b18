"""Ratio or clip fraction is off where it must be 1 and 0: the loss scores other positions than were sampled."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, early, failure, present, ruled_out, seen
from klinic.median import median

# Share of tokens that clip although the policy is its own denominator. Micro-batches of other shapes give "slightly above 0"
# (verl #6278's neighbour #6280); a wrong attention mask gave 0.4 before the first update (verl #6278).
CLIPPED = 0.10
OLD_KL = 0.05  # nats/token to the old policy before it was left (verl #6278: ppo_kl huge as well)
RATIO_OFF = 0.05  # of the ratio before the update (weight-sync-failure's limit)
GAP = 0.05  # nats/token between trainer and sampler, which explains a ratio against the sampler's own log-probs
LAGS = 1.0  # versions; old samples explain it, too


@failure(
    family="implementation",
    stage="implementation",
    explains="lr-too-high kl-spike no-learning plateau negative-kl reward-collapse small-batch-noise",
    treatments=(
        Treatment("fix-code", "mask"),
        Treatment("inspect", "logprobs"),
        Treatment("fix-code", "old_logprobs"),
    ),
)
def mask_error(facts: Facts) -> Verdict:
    """Need: one update a batch (or a gauge taken before the update) and a ratio that is not 1. Veto: engines or age explain it."""
    before = facts.named("ratio_before_update/")
    mean = before.get("ratio_before_update/mean")
    clip, old = facts.level("clip_frac"), facts.level("kl_old")
    if mean is None and clip is None and old is None and not facts.is_absent("clip_frac"):
        facts.need_level("clip_frac")
    gap, lag = facts.level("mismatch"), facts.shape("staleness")
    if (gap is not None and abs(gap.after) >= GAP) or (lag is not None and lag.after >= LAGS):
        role = "mismatch" if gap is not None and abs(gap.after) >= GAP else "staleness"
        return ruled_out(seen(facts, role, "against", "explained"))
    if mean is not None:
        off = float(median(abs(mean.values - 1)))
        if off >= RATIO_OFF:
            return present(
                "stop",
                early(facts),
                Evidence("ratio_mean", "for", "ratio-before", mean.word, mean.before, mean.after),
                sure=True,
            )
        return ruled_out(Evidence("ratio_mean", "against", "ratio-one", values={"off": off}))
    kl = facts.level("kl")
    if str(facts.setting("importance_level") or "token").startswith("sequence"):
        return ruled_out(seen(facts, "clip_frac", "against", "sequence-level"))
    updates = facts.number("updates_per_batch")
    if updates is None or updates > 1:
        return ruled_out(
            Evidence("clip_frac", "against", "several-updates", values={"updates": updates or "?"})
        )
    clips = clip is not None and min(clip.first, clip.before, clip.after) >= CLIPPED
    parts = old is not None and min(abs(old.first), abs(old.before), abs(old.after)) >= OLD_KL
    if not clips and not parts:
        said = "none-clipped" if clip is not None else "none-left"
        return ruled_out(seen(facts, "clip_frac", "against", said))
    if kl is not None and abs(kl.before) >= OLD_KL:
        return ruled_out(seen(facts, "kl", "against", "policy-far"))
    return present(
        "act",
        early(facts),
        seen(facts, "clip_frac", "for", "clips-on-policy") if clips else None,
        seen(facts, "kl_old", "for", "old-apart") if parts else None,
        seen(facts, "kl", "for", "reference-near") if kl is not None else None,
        sure=clips and parts,
    )
