"""Trainer and sampler score different texts: the chat template or the tokenisation differs."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen
from klinic.median import median

# nats/token from the first row on. Engines that compute the same text part by 0.01 to 0.1; a re-tokenised conversation gave 4
# to 7 (science.md 1.3). The limit lies between the two, nearer the engines, since half a text may still agree.
APART = 1.0
PROBABILITY = 0.3  # the same as a difference of probabilities (our choice: three times a critical gap of engines)
GEO = 0.4  # geometric ratio: exp of minus the limit
FIRST = 5  # rows from the start over which it must hold
GROWTH = 4.0  # times its first level: then weights part, not texts
LAGS = 1.0  # versions from which staleness explains the gap (our choice)


@failure(
    family="implementation",
    stage="implementation",
    explains="train-inference-mismatch mask-error lr-too-high kl-runaway no-learning negative-kl reward-collapse plateau",
    treatments=(
        Treatment("fix-code", "token_ids"),
        Treatment("inspect", "logprobs"),
        Treatment("inspect", "rendered_prompt"),
    ),
)
def template_mismatch(facts: Facts) -> Verdict:
    """Need: a gap of over a nat a token from the first rows on. Veto: it starts small, grows, or the samples are old."""
    gap, geo = facts.level("mismatch"), facts.level("ratio_geo")
    if gap is None and geo is None:
        facts.need_level("mismatch")
    lag = facts.shape("staleness")
    if lag is not None and float(median(lag.values[:FIRST])) >= LAGS:
        return ruled_out(seen(facts, "staleness", "against", "samples-old"))
    if gap is not None:
        metric = facts.metric("mismatch")
        limit = PROBABILITY if metric is not None and "prob_diff" in metric.name else APART
        start = float(median(abs(gap.values[:FIRST])))
        if min(start, abs(gap.first)) < limit:
            return ruled_out(seen(facts, "mismatch", "against", "same-text", first=gap.first))
        if abs(gap.after) >= GROWTH * start:
            return ruled_out(seen(facts, "mismatch", "against", "grows", first=gap.first))
        role = "mismatch"
    else:
        assert geo is not None
        metric = facts.metric("ratio_geo")
        if metric is None or "new_over_old" in metric.name or max(geo.first, geo.before) > GEO:
            return ruled_out(seen(facts, "ratio_geo", "against", "same-text", first=geo.first))
        role = "ratio_geo"
    kl = facts.level("kl")
    return present(
        "stop",
        early(facts),
        seen(facts, role, "for", "other-text"),
        seen(facts, "kl", "for", "reference-near")
        if kl is not None and kl.steps[0] <= 1 and abs(kl.first) < 0.1 * APART
        else None,
        sure=True,
    )
