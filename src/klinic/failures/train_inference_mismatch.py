"""Trainer and sampler give the same tokens other probabilities, from the first step on: the engines differ."""

from __future__ import annotations

from klinic.curves.shape import SUDDEN
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
from klinic.failures._weights import at_rest

# nats/token, absolute difference: 0.011 flat in a healthy run, critical from 0.1 (failure_modes.json, science.md 1.3);
# between the two a run goes on, at a cost.
CAUTION, ACT = 0.05, 0.10
K3_CAUTION, K3_ACT = 0.01, 0.10  # the same as a k3 or k1 divergence (failure_modes.json)
PROBABILITY_CAUTION, PROBABILITY_ACT = 0.03, 0.08  # the same as a difference of probabilities
GROWTH = 4.0  # times its own level: then the weights part, not the engines
FEW_COUNT = 0.3  # effective sample size (verl, docs/algo/rollout_corr.md)
LAGS = 1.0  # versions; samples this old explain a gap by their age


@failure(
    family="off-policy",
    stage="implementation",
    explains="kl-runaway reward-collapse nan negative-kl lr-too-high small-batch-noise format-collapse repetition",
    treatments=(
        set_knob("is_correction", to=True, restart="may"),
        Treatment("fix-code", "same_numbers"),
        Treatment("inspect", "logprobs"),
    ),
    restart="may",
)
def train_inference_mismatch(facts: Facts) -> Verdict:
    """Need: a gap at the first steps that stays at its level. Veto: it began small, or the samples are old."""
    (gap,) = facts.need_level("mismatch")
    lag = facts.shape("staleness")
    if lag is not None and lag.after >= LAGS:
        return ruled_out(seen(facts, "staleness", "against", "samples-old"))
    caution, act = _limits(facts)
    resting = at_rest(facts)  # then the weights cannot part
    fresh = (lag is not None and lag.highest < LAGS) or resting
    grows = abs(gap.after) >= GROWTH * abs(gap.before)
    if grows and not resting and fresh and gap.haste > SUDDEN:
        return ruled_out(seen(facts, "mismatch", "against", "grows-with-updates"))
    # A gap that grows is one of the weights, unless the log says that they were always the newest.
    level = abs(gap.after) if fresh else min(abs(gap.before), abs(gap.after))
    if level < caution or (grows and not fresh):
        return ruled_out(seen(facts, "mismatch", "against", "gap-small"))
    outside = facts.shape("ratio_outside")
    return present(
        "act" if level >= act else "caution",
        gap.onset if grows else early(facts),
        seen(facts, "mismatch", "for", "gap-appears" if grows else "gap-from-start"),
        seen(facts, "ratio_outside", "for", "outside")
        if outside is not None and outside.after >= 0.05
        else None,
        seen(facts, "ess", "for", "ess-low")
        if (ess := facts.shape("ess")) is not None and ess.after < FEW_COUNT
        else None,
        Evidence("lr", "for", "lr-zero") if resting and grows else None,
        Evidence("mismatch", "for", "temperature", values={"temperature": temperature})
        if (temperature := facts.number("temperature")) is not None and temperature != 1
        else None,
        sure=level >= act,
    )


def _limits(facts: Facts) -> tuple[float, float]:
    metric = facts.metric("mismatch")
    name = metric.name if metric is not None else ""
    if "prob_diff" in name:
        return PROBABILITY_CAUTION, PROBABILITY_ACT
    return (CAUTION, ACT) if "abs" in name else (K3_CAUTION, K3_ACT)
