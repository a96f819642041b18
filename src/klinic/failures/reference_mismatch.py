"""The policy differs from its reference before the first update."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen

AT_ZERO = (
    0.02  # nats/token at the first step; the same weights give 0 (lab.md: 0.072 against 0.0002)
)
STEPS = 1  # later rows have had updates
STAYS = 0.3  # of the first value must still be there in the next rows: no single odd batch


@failure(
    family="implementation",
    stage="implementation",
    treatments=(Treatment("fix-code", "reference"),),
    explains="negative-kl",
)
def reference_mismatch(facts: Facts) -> Verdict:
    """Need: KL above 0.02 at step 0 or 1. Veto: it starts at 0."""
    (kl,) = facts.need_level("kl")
    metric = facts.metric("kl")
    if (
        kl.steps[0] > STEPS
        or "counted" in facts.run.notes
        or (facts.run.segments and facts.run.segments[0].first > STEPS)
    ):
        return ruled_out(seen(facts, "kl", "against", "no-first-step"))
    following = kl.values[1:6]
    if (
        metric is None
        or "seq_sum" in metric.name
        or kl.first < AT_ZERO
        or not len(following)
        or following.min() < STAYS * kl.first
    ):
        return ruled_out(seen(facts, "kl", "against", "starts-at-zero", first=kl.first))
    return present(
        "caution", early(facts), seen(facts, "kl", "for", "off-at-start", first=kl.first)
    )
