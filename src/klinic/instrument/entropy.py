"""The entropy of the policy: from log-probs, and by the place in the response.

From logits of a real vocabulary use ``logprobs_and_entropy``; ``entropy_of`` is for distributions that are already there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from klinic.instrument.arrays import Array, library, wide
from klinic.instrument.masked import masked_mean

PARTS = 8  # equal parts of a response, as the lab logs them
# Where the opening ends nobody can say; powers of 4 keep the first tokens (a fixed opening, seed 001 section 4.5) apart.
EDGES = (0, 4, 16, 64, 256, 1024, 4096)


def log_softmax(logits: Array) -> Array:
    """Log-probs over the last axis, nats. logits: (..., V)."""
    logits = wide(logits)
    xp = library(logits)
    shifted = logits - xp.amax(logits, -1)[..., None]
    return shifted - xp.log(xp.exp(shifted).sum(-1))[..., None]


def entropy_of(log_probs: Array) -> Array:
    """Shannon entropy in nats of the distributions on the last axis. log_probs: (..., V) -> (...). Probability 0 adds 0."""
    log_probs = wide(log_probs)
    xp = library(log_probs)
    probs = xp.exp(log_probs)
    return -(probs * xp.where(probs > 0, log_probs, xp.zeros_like(probs))).sum(-1)


def position(mask_BL: Array) -> Array:
    """Which response token this is, the first 0; (B, L) integers, meaningless where the mask is 0.

    Counted along the mask, so padding on the left does not shift it and tokens of a tool's answer, left out, do not count.
    """
    return (mask_BL != 0).cumsum(-1) - 1


def by_position(
    values_BL: Array, mask_BL: Array, edges: Sequence[int] = EDGES
) -> dict[tuple[int, int | None], Array]:
    """Mean of the values at response tokens [a, b), for each pair of neighbouring edges; the last is open.

    NaN where no response is that long. Source: seed 001 section 4.5 (opening and closing tokens collapse first).
    """
    return {
        (edges[i], edges[i + 1] if i + 1 < len(edges) else None): masked_mean(values_BL, part)
        for i, part in enumerate(position_parts(mask_BL, edges))
    }


def by_relative_position(values_BL: Array, mask_BL: Array, parts: int = PARTS) -> list[Array]:
    """Mean of the values in each of ``parts`` equal parts of the response, the opening first; NaN where none has tokens.

    Token i of n belongs to part floor(i * parts / n), so a response shorter than ``parts`` leaves some parts empty. Tokens are
    pooled: a long response counts by its length.
    """
    return [masked_mean(values_BL, part) for part in relative_parts(mask_BL, parts)]


def position_parts(mask_BL: Array, edges: Sequence[int] = EDGES) -> Iterator[Array]:
    """The masks of ``by_position``."""
    keep, at = mask_BL != 0, position(mask_BL)
    for i, edge in enumerate(edges):
        part = keep & (at >= edge)
        yield part & (at < edges[i + 1]) if i + 1 < len(edges) else part


def relative_parts(mask_BL: Array, parts: int = PARTS) -> Iterator[Array]:
    """The masks of ``by_relative_position``."""
    keep = mask_BL != 0
    length = keep.sum(-1)[..., None]
    at = position(mask_BL) * parts // (length + (length == 0))
    for part in range(parts):
        yield keep & (at == part)
