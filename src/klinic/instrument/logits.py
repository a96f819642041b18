"""Log-probs of the sampled tokens and the entropy of the policy in one pass over the logits, a few rows at a time.

The obvious form, ``softmax(logits)`` and a sum, holds three or four copies of the logits; for a vocabulary of 150,000
those are the largest arrays of the whole training step. Here two buffers of ``CHUNK_BYTES`` are all there is, and each
logit is exponentiated once: with x = logits / T - max and s = sum exp(x),

    log p[id] = x[id] - log s            H = log s - sum(exp(x) * x) / s

The backward pass keeps the logits (which the model keeps anyway) and two numbers a row, and computes the rest again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from klinic.errors import BadUsage

# Two such buffers stay within a core's second-level cache. On one thread, rows of 32,768: 128 KiB take 1.5 times as long, 0.5 to
# 8 MiB are alike, so the smallest of these. A GPU wants fewer and larger kernels; that size is a guess, not measured.
CHUNK_BYTES = 1 << 19
CHUNK_BYTES_GPU = 1 << 26
LOWEST = -1e30  # stands for -inf: its exp is 0 all the same, and 0 times it is 0 and not NaN


def logprobs_and_entropy(
    logits_BLV: Tensor,
    ids_BL: Tensor,
    mask_BL: Tensor | None = None,
    *,
    temperature: float = 1.0,
    entropy_grad: bool = False,
    chunk_rows: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The log-prob of each token of ``ids`` and the entropy of the distribution it was drawn from, both in nats.

    logits_BLV: (..., V) in float32, float64, bfloat16 or float16; row l is the one that predicts ids[l] (shift before).
    A slice such as ``logits[:, :-1]`` is not copied. ids_BL, mask_BL: (...). Returns two arrays (...), float32 (float64
    for float64 logits); sums run in that type whatever the logits are. Both are those of ``logits / temperature``.
    Where the mask is 0, neither is computed and both are 0; logits there get no gradient. Without a mask every row counts.
    Gradients flow to the logits through the log-probs, and with ``entropy_grad`` through the entropy.
    Logits of -inf (tokens ruled out) have probability 0; a row that is all -inf, or has a NaN, gives NaN.
    Raises BadUsage where the shapes do not fit.
    """
    _check(logits_BLV, ids_BL, mask_BL, temperature)
    rows = chunk_rows or _rows_a_chunk(logits_BLV)
    logp, entropy = _LogprobsAndEntropy.apply(  # type: ignore[no-untyped-call]
        logits_BLV, ids_BL, mask_BL, temperature, rows
    )
    return logp, entropy if entropy_grad else entropy.detach()


def _check(logits: Tensor, ids: Tensor, mask: Tensor | None, temperature: float) -> None:
    if logits.shape[:-1] != ids.shape:
        raise BadUsage(
            f"logits {tuple(logits.shape)} do not fit ids {tuple(ids.shape)}",
            "logprobs_and_entropy",
            "logits[:, :-1] predict ids[:, 1:]",
        )
    if mask is not None and mask.shape != ids.shape:
        raise BadUsage(
            f"mask {tuple(mask.shape)} does not fit ids {tuple(ids.shape)}", "logprobs_and_entropy"
        )
    if not temperature > 0:
        raise BadUsage(f"temperature {temperature} is not above 0", "logprobs_and_entropy")


def _rows_a_chunk(logits: Tensor) -> int:
    size = CHUNK_BYTES if logits.device.type == "cpu" else CHUNK_BYTES_GPU
    return max(1, size // (4 * max(1, logits.shape[-1])))


def _kind(logits: Tensor) -> torch.dtype:
    return torch.float64 if logits.dtype == torch.float64 else torch.float32


def _blocks(logits: Tensor) -> Iterator[Tensor]:
    """The logits as (N, V) views that together hold all rows in order; no copy."""
    if logits.ndim == 1:
        yield logits[None]
        return
    try:
        yield logits.view(-1, logits.shape[-1])
    except RuntimeError:  # a slice over positions: one view a sequence
        for sequence in logits.unbind(0):
            yield from _blocks(sequence)


def _chunks(
    logits: Tensor, mask: Tensor | None, rows: int
) -> Iterator[tuple[Tensor, slice | Tensor]]:
    """Up to ``rows`` rows of logits at a time, with their places among all rows. mask: (N,)."""
    first = 0
    for block in _blocks(logits):
        if mask is None:
            for at in range(0, len(block), rows):
                part = block[at : at + rows]
                yield part, slice(first + at, first + at + len(part))
        else:
            places = mask[first : first + len(block)].nonzero()[:, 0]
            for at in range(0, len(places), rows):
                some = places[at : at + rows]
                yield block[some], some + first
        first += len(block)


class _Buffers:
    """Two (rows, V) arrays that every chunk uses again."""

    def __init__(self, logits: Tensor, rows: int) -> None:
        shape = min(rows, max(1, logits.shape[:-1].numel())), logits.shape[-1]
        self.x = torch.empty(shape, dtype=_kind(logits), device=logits.device)
        self.p = torch.empty_like(self.x)

    def load(self, part: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        """Logits / temperature minus their maximum, and the other buffer, both cut to size."""
        x, p = self.x[: len(part)], self.p[: len(part)]
        top = part.amax(-1, keepdim=True)
        if part.dtype == x.dtype:
            torch.sub(part, top, out=x)
        else:
            x.copy_(part).sub_(top.to(x.dtype))
        if temperature != 1:
            x.div_(temperature)
        return x.clamp_(min=LOWEST), p


class _LogprobsAndEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, ids: Tensor, mask: Tensor | None, temperature: float, rows: int
    ) -> tuple[Tensor, Tensor]:
        flat_ids = ids.reshape(-1).long()
        flat_mask = None if mask is None else mask.reshape(-1) != 0
        logp = torch.zeros(flat_ids.shape, dtype=_kind(logits), device=logits.device)
        entropy, log_sum = torch.zeros_like(logp), torch.zeros_like(logp)
        buffers = _Buffers(logits, rows)
        for part, where in _chunks(logits, flat_mask, rows):
            x, p = buffers.load(part, temperature)
            torch.exp(x, out=p)
            total = p.sum(-1)
            part_log_sum = total.log()
            logp[where] = x.gather(-1, flat_ids[where, None])[:, 0] - part_log_sum
            entropy[where] = part_log_sum - p.mul_(x).sum(-1) / total
            log_sum[where] = part_log_sum
        ctx.save_for_backward(logits, flat_ids, flat_mask, log_sum, entropy)
        ctx.temperature, ctx.rows = temperature, rows
        ctx.set_materialize_grads(False)
        return logp.view(ids.shape), entropy.clone().view(ids.shape)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_logp: Tensor | None, d_entropy: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        logits, ids, mask, log_sum, entropy = ctx.saved_tensors
        push = torch.zeros_like(log_sum) if d_logp is None else d_logp.reshape(-1)
        shape = len(ids), logits.shape[-1]
        d_logits = (logits.new_empty if mask is None else logits.new_zeros)(shape)
        buffers = _Buffers(logits, ctx.rows)
        for part, where in _chunks(logits, mask, ctx.rows):
            x, p = buffers.load(part, ctx.temperature)
            x.sub_(log_sum[where, None])
            torch.exp(x, out=p)
            pull = push[where, None]
            if d_entropy is None:
                p.mul_(-pull)
            else:  # d H / d z = -p (log p + H), d log p[id] / d z = onehot - p
                x.add_(entropy[where, None]).mul_(-d_entropy.reshape(-1)[where, None])
                p.mul_(x.sub_(pull))
            p.scatter_add_(-1, ids[where, None], pull)
            if ctx.temperature != 1:
                p.div_(ctx.temperature)
            d_logits[where] = p.to(d_logits.dtype)
        return d_logits.view(logits.shape), None, None, None, None
