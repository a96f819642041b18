"""From rewards to advantages: groups (GRPO) or a critic (PPO)."""

from __future__ import annotations

from klinic import instrument
from klinic.instrument.groups import SMALL
from klinic.lab.network import Array


def group_advantages(rewards: Array, group: int, scaling: str, baseline: str) -> Array:
    """Each reward against its group. rewards (B,), groups side by side -> (B,).

    baseline "none": nothing is subtracted, so winners and losers are both reinforced.
    """
    if baseline == "mean" and scaling == "group":
        result: Array = instrument.group_advantages(rewards, group)
        return result
    by_group = rewards.reshape(-1, group)
    centred = by_group - by_group.mean(1, keepdims=True) if baseline == "mean" else by_group
    if scaling == "group":
        centred = centred / (by_group.std(1, keepdims=True) + SMALL)
    result = centred.reshape(-1)
    return result


def gae(rewards: Array, values: Array, mask: Array, decay: float) -> tuple[Array, Array]:
    """Generalised advantage estimates (discount 1) and returns. rewards (B,) at the last token; the others (B, T)."""
    at_token = instrument.at_last_token(rewards.astype(values.dtype), mask)
    advantage, returns = instrument.gae(at_token, values, mask, decay=decay)
    return advantage, returns
