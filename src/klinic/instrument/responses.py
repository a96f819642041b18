"""Lengths, endings and sameness of the sampled responses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from klinic.instrument.arrays import Array, alike, library
from klinic.instrument.groups import grouped


def lengths(mask_BL: Array) -> Array:
    """Response tokens of each row (B,), with the end token if the mask holds it. Empty rows are 0."""
    return (mask_BL != 0).sum(-1)


def last_token(mask_BL: Array) -> Array:
    """Where the last response token of each row is, as a mask (B, L) with at most one token a row."""
    keep = mask_BL != 0
    return keep & (keep.cumsum(-1) == lengths(keep)[:, None])


def ended(ids_BL: Array, mask_BL: Array, eos: int | Sequence[int]) -> Array:
    """Whether the last response token is an end token (B,); false for an empty row.

    eos: one id or several (chat models have two). 1 minus its mean is trunc/frac_finish_length: cut off by the length cap. The mask
    must hold the end token. A response whose end token is the last one that fits has ended, though its length is the cap.
    """
    alike(ids_BL, mask_BL, "ended")
    found = mask_BL != mask_BL
    for token in [eos] if isinstance(eos, int) else eos:
        found = found | (ids_BL == token)
    return (found & last_token(mask_BL)).any(-1)


def at_cap(mask_BL: Array, cap: int) -> Array:
    """Whether the response is as long as it may be (B,). (trunc/frac_at_max_len)

    verl's clip_ratio counts this, so it also counts responses that ended with exactly ``cap`` tokens.
    """
    return lengths(mask_BL) >= cap


def unique_share(ids_BL: Array, mask_BL: Array, groups: int | Array) -> float:
    """Mean over the groups of ``unique_shares``; NaN without groups. (samples/unique_frac)"""
    shares = unique_shares(ids_BL, mask_BL, groups)
    return float(np.mean(shares)) if shares else float("nan")


def unique_shares(ids_BL: Array, mask_BL: Array, groups: int | Array) -> list[float]:
    """Different responses over responses in each group; 1/G when all are the same.

    ids_BL, mask_BL: (B, L); responses are equal when their tokens inside the mask are, wherever the padding is. groups: see
    groups.py. One discriminator between a collapsed policy and questions that are too easy (seed 003).
    """
    alike(ids_BL, mask_BL, "unique_shares")
    ids, keep = _local(ids_BL), _local(mask_BL) != 0
    number: dict[bytes, int] = {}
    same = [
        number.setdefault(row[k].tobytes(), len(number)) for row, k in zip(ids, keep, strict=True)
    ]
    own = groups if isinstance(groups, int) else _local(groups)
    found = grouped(np.array(same, float), own)
    return [
        len(set(row[there].tolist())) / float(there.sum())
        for row, there in zip(found.values_NG, found.member_NG, strict=True)
    ]


def _local(values: Array) -> Array:
    return values if library(values) is np else values.detach().cpu().numpy()
