"""Nearly every response is cut at the cap from the first step on."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

FROM_START = 0.9  # share cut in the first rows (trl #5697: 0.97 to 1.0)
MOSTLY = 0.7  # share cut from the first rows to the last: most answers never end
AT_CAP = 0.8  # share of rows whose mean length is exactly the longest one
SHORTEST_CAP = 16  # tokens; the shortest cap seen in a public run
STARVED = 0.91  # zero-variance share at which no gradient is left (seed 003's bands as shares, science.md D1)


@failure(
    family="length",
    stage="implementation",
    explains="too-hard zero-advantage no-learning truncation-rise plateau gradient-lost solved small-batch-noise length-explosion",
    treatments=(set_knob("max_new_tokens", scale=4), Treatment("fix-code", "stop_token")),
)
def truncated_from_start(facts: Facts) -> Verdict:
    """Need: nearly all responses cut from the first rows to the last. Support: no reward, no spread of rewards."""
    trunc, length = facts.level("trunc"), facts.shape("len")
    if trunc is None and length is None:
        facts.need_level("trunc")
    if trunc is not None:
        if (
            trunc.first < MOSTLY
            or trunc.before < MOSTLY
            or trunc.after < MOSTLY
            or trunc.lowest < MOSTLY / 1.4
        ):
            return ruled_out(seen(facts, "trunc", "against", "not-cut"))
        share = trunc.before
    else:
        # Without a truncation rate, a mean length that keeps hitting one whole number says that no response ends.
        assert length is not None
        top = float(length.values.max())
        if (
            length.n < 3
            or top != round(top)
            or top < SHORTEST_CAP
            or np.mean(length.values == top) < AT_CAP
        ):
            return ruled_out(seen(facts, "len", "against", "not-cut"))
        share = 1.0
    starved = _starved(facts)
    severity = (
        "stop"
        if share >= FROM_START and starved
        else "act"
        if share >= FROM_START and not _learns(facts)
        else "caution"
    )
    return present(
        severity,
        early(facts),
        seen(facts, "trunc" if trunc is not None else "len", "for", "all-cut"),
        seen(facts, "reward", "for", "nothing-paid") if starved else None,
        sure=share >= FROM_START,
    )


def _starved(facts: Facts) -> bool:
    zero, spread, reward = facts.shape("zero_std"), facts.shape("reward_std"), facts.shape("reward")
    if zero is not None:
        return zero.after >= STARVED
    if spread is not None:
        return spread.after == 0
    return reward is not None and reward.after == 0


def _learns(facts: Facts) -> bool:
    reward = facts.shape("reward")
    return reward is not None and reward.rose
