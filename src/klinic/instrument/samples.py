"""Which rollouts of a step are kept: the best, the worst, and some drawn at random."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from klinic.errors import BadUsage, did_you_mean

COLUMNS = (
    "step",
    "prompt_id",
    "group",
    "prompt",
    "completion",
    "reward",
    "reward_parts",
    "advantage",
    "length",
    "truncated",
    "policy_version",
)
NEEDED = ("completion", "reward")


def chosen(
    step: int, rows: Sequence[Mapping[str, Any]], top: int, bottom: int, random: int
) -> list[dict[str, Any]]:
    """The rows to keep, each once, in the order of the columns. rows: one mapping a rollout.

    What has no reward (None or NaN) is neither best nor worst. The draw depends on the step alone: a step that is run again
    keeps the same places. Raises BadUsage for a column klinic does not know, or where the completion or the reward is missing.
    """
    for i, row in enumerate(rows):
        _check(i, row)
    rewards = [_reward(row["reward"]) for row in rows]
    judged = sorted(
        (i for i in range(len(rows)) if not math.isnan(rewards[i])), key=rewards.__getitem__
    )
    best = judged[::-1][: max(0, top)]
    worst = [i for i in judged if i not in best][: max(0, bottom)]
    rest = [i for i in range(len(rows)) if i not in {*best, *worst}]
    draw = np.random.default_rng(step).permutation(len(rest))[: max(0, random)]
    kept = [*best, *worst, *(rest[i] for i in sorted(draw))]
    return [
        {
            name: _plain(value)
            for name in COLUMNS
            if (value := {"step": step, **rows[i]}.get(name)) is not None
        }
        for i in kept
    ]


def _check(i: int, row: Mapping[str, Any]) -> None:
    for name in row:
        if name not in COLUMNS:
            raise BadUsage(
                f"unknown column {name!r}",
                f"rollout {i}",
                did_you_mean(name, COLUMNS) or f"known: {', '.join(COLUMNS)}",
            )
    for name in NEEDED:
        if name not in row:
            raise BadUsage(
                f"no column {name!r}", f"rollout {i}", "a rollout has a completion and a reward"
            )


def _reward(value: Any) -> float:
    return math.nan if value is None else float(value)


def _plain(value: Any) -> Any:
    """A NumPy or torch number as Python's own; mappings and lists likewise."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") else value
