"""One sample: a prompt, what the policy wrote, what it was paid."""

from __future__ import annotations

import math

import msgspec


class Rollout(msgspec.Struct, kw_only=True):
    """One completion. Field names are the Parquet columns; NaN, "" and None mean that the dump does not say.

    step: of the trainer, -1 where nothing says. prompt_id: equal for equal prompts. group: samples that were compared
    with one another, unique within a step. reward_parts: name to number. length: tokens of the completion. truncated:
    cut at the length limit. policy_version: of the weights that wrote it. answer: the right answer, the label.
    acc: whether it is right, as the trainer judged. task: the data set or kind of problem. error: what the verifier raised.
    """

    step: int = -1
    prompt_id: str = ""
    group: str = ""
    prompt: str = ""
    completion: str = ""
    reward: float = math.nan
    reward_parts: dict[str, float] = {}
    advantage: float = math.nan
    length: float = math.nan
    truncated: bool | None = None
    policy_version: float = math.nan
    answer: str = ""
    acc: float = math.nan
    task: str = ""
    error: str = ""
