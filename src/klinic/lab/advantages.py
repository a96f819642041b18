"""From rewards to advantages: groups (GRPO) or a critic (PPO)."""

from __future__ import annotations

import numpy as np

from klinic.lab.network import Array

SMALL = 1e-4  # keeps a group without variance at zero instead of dividing by it


def group_advantages(rewards: Array, group: int, scaling: str, baseline: str) -> Array:
    """Each reward against its group. rewards (B,), groups side by side -> (B,).

    baseline "none": nothing is subtracted, so winners and losers are both reinforced.
    """
    by_group = rewards.reshape(-1, group)
    if baseline == "mean":
        centred = by_group - by_group.mean(1, keepdims=True)
    else:
        centred = by_group
    if scaling == "group":
        centred = centred / (by_group.std(1, keepdims=True) + SMALL)
    result: Array = centred.reshape(-1)
    return result


def gae(rewards: Array, values: Array, mask: Array, decay: float) -> tuple[Array, Array]:
    """Generalised advantage estimates (discount 1) and returns. rewards (B,) at the last token; the others (B, T)."""
    batch, length = mask.shape
    ends = mask.sum(1).astype(int) - 1
    at_token = np.zeros_like(values)
    at_token[np.arange(batch), ends] = rewards
    advantage = np.zeros_like(values)
    running, following = np.zeros((2, batch), values.dtype)
    for t in range(length - 1, -1, -1):
        m = mask[:, t]
        delta = at_token[:, t] + following - values[:, t]
        running = (delta + decay * running) * m
        advantage[:, t] = running
        following = values[:, t] * m
    return advantage, (advantage + values) * mask


def whitened(advantage: Array, mask: Array) -> Array:
    """Mean 0 and std 1 over the response tokens. Both (B, T)."""
    kept = advantage[mask > 0]
    result: Array = (advantage - kept.mean()) / (kept.std() + 1e-8)
    return result
