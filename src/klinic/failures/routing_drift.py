"""Trainer and sampler of a mixture of experts route the same tokens to other experts."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

ALIKE = 0.90  # share of experts chosen alike; 10 % of routers differing is what arXiv 2510.11370 reports without replay
FALLS = 0.05  # of that share, by which it must fall (below a flat share's 0.07: the gauge is an average over many tokens)
SURE_Z = 6.0  # science.md 1.2 e
GAP = 0.05  # nats/token between trainer and sampler (train-inference-mismatch's limit)
BURSTS = 0.10  # clip fraction of the worst rows ("bursty clipping", arXiv 2510.23027)


@failure(
    family="off-policy",
    stage="implementation",
    explains="train-inference-mismatch kl-runaway reward-collapse lr-too-high kl-spike gradient-spike nan",
    treatments=(
        Treatment("fix-code", "routing_replay"),
        set_knob("importance_level", to="sequence"),
        Treatment("fix-code", "router_precision"),
    ),
)
def routing_drift(facts: Facts) -> Verdict:
    """Need: fewer experts chosen alike than 0.9, or a clear fall of that share. Without that gauge it cannot be told."""
    gap = facts.shape("mismatch")
    if facts.shape("router_agreement") is None and gap is not None and gap.highest < GAP:
        return ruled_out(seen(facts, "mismatch", "against", "gap-small"))
    (alike,) = facts.need("router_agreement")
    falls = alike.change <= -FALLS and alike.z >= SURE_Z and not facts.few
    if alike.after >= ALIKE and not falls:
        return ruled_out(seen(facts, "router_agreement", "against", "routes-alike"))
    clip, success = facts.shape("clip_frac"), facts.success
    wide = gap is not None and abs(gap.after) >= GAP
    bursty = clip is not None and float(clip.values.max()) >= BURSTS > clip.after
    lost = success is not None and success.fell
    return present(
        "stop" if lost and (wide or bursty) else "act" if wide or bursty or lost else "caution",
        alike.onset if falls else early(facts),
        seen(facts, "router_agreement", "for", "routes-apart"),
        seen(facts, "mismatch", "for", "gap") if wide else None,
        seen(facts, "clip_frac", "for", "bursts") if bursty else None,
        seen(facts, facts.success_role, "for", "acc-lost", success) if lost else None,
    )
