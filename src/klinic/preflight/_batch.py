"""What one batch of a training loop is, as its author hands it over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

Array = Any  # numpy.ndarray, torch.Tensor or lists


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """One batch, as the loss gets it; whatever is left out is not checked.

    B rows, L columns: prompt, response and padding on either side. An array with fewer columns covers the last ones of ``ids``: log-probs
    (B, L - 1) of ``ids[:, 1:]``, or (B, T) of responses that fill the last T columns. Column t of an array (B, L) is that of ``ids[:, t]``.
    """

    ids: Array = None  # (B, L) token ids
    mask: Array = None  # (B, W) 1: a response token, the end token too
    prompt_lengths: Array = None  # (B,) real tokens of each prompt, at the start of its row
    prompt_mask: Array = None  # (B, W) 1: a prompt token
    attention: Array = None  # (B, W) 1: no padding
    pad: int | None = None  # ids; the tokenizer's, where it is given
    eos: int | Sequence[int] | None = None
    bos: int | None = None
    logp: Array = None  # (B, W) nats: of the policy, now
    old: Array = None  # (B, W) nats: the denominators of the ratio
    reference: Array = None  # (B, W) nats
    kl: Array = None  # (B, W) nats: the KL to the reference of each token, as your loop computes it
    kl_estimator: str = "k3"
    temperature: float = 1.0  # by which the logits are divided before all log-probs
    rewards: Array = None  # (B,) score
    right: Array = None  # (B,) 1: the answer is right, whatever the reward says
    advantages: Array = None  # (B,) or (B, W)
    ended: Array = None  # (B,) 1: the sampler says that the response came to its own end
    sampled: Array = None  # (B, W) the ids that the sampler drew
    policy_version: Any = None  # of the trainer's weights: a number or a name
    sampler_version: Any = None  # of the weights that sampled: one, or (B,)
    step: int = 0  # updates made so far


NAMES = tuple(field.name for field in fields(Batch))
COLUMNS = ("ids", "mask", "prompt_mask", "attention", "logp", "old", "reference", "kl", "sampled")
ROWS = ("prompt_lengths", "rewards", "right", "ended")
WHOLE = ("pad", "bos", "step")
