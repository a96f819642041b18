"""What the arithmetic asks of an array, so that one definition serves NumPy (the lab) and torch (a trainer).

Both libraries share ``where``, ``exp``, ``log``, ``sum(axis=...)`` and boolean indexing under the same names. What is written
with these is exact in NumPy, and in torch runs on the array's own device and passes gradients.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from klinic.errors import BadUsage

Array = Any  # numpy.ndarray or torch.Tensor, of the shape the suffix says: B sequences, L tokens, V vocabulary, G group


def library(values: Array) -> Any:
    """The module whose functions take this array: torch for its tensors, else numpy. Imports nothing."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(values, torch.Tensor) else np


def wide(values: Array) -> Array:
    """The values as floats fit to be summed: half precision and integers become float32, lists become arrays."""
    xp = library(values)
    if xp is np:
        values = np.asarray(values)
        return values if values.dtype in (np.float32, np.float64) else _numbers(values)
    return values if values.dtype in (xp.float32, xp.float64) else values.float()


def _numbers(values: Array) -> Array:
    return values.astype(np.float32 if values.dtype.itemsize < 4 else np.float64)


def plain(values: Array | None) -> Array | None:
    """The values without their history: a metric needs no gradient."""
    return values if values is None or library(values) is np else values.detach()


def kept(mask: Array, values: Array, where: str) -> Array:
    """The mask as booleans on the side of ``values``. Raises BadUsage where the shapes differ: nothing is broadcast.

    A mask only says yes or no: any number but 0 counts as 1. Weights belong into the values.
    """
    xp = library(values)
    found = mask != 0 if library(mask) is xp else xp.asarray(mask) != 0
    if xp is np:
        found = np.asarray(found)
    if tuple(found.shape) != tuple(values.shape):
        raise BadUsage(
            f"the mask is {tuple(found.shape)}, the values are {tuple(values.shape)}",
            where,
            "log-probs have one column less than the tokens: slice the mask as you sliced the ids",
        )
    return found


def alike(a: Array, b: Array, where: str) -> None:
    """Raises BadUsage where two arrays differ in shape; broadcasting (B,) against (B, L) hides an error."""
    if tuple(a.shape) != tuple(b.shape):
        raise BadUsage(f"the shapes {tuple(a.shape)} and {tuple(b.shape)} differ", where)


def order(values: Array) -> Array:
    """The places that sort a flat array; equal values keep their order."""
    xp = library(values)
    return np.argsort(values, kind="stable") if xp is np else xp.argsort(values, stable=True)


def ordered(values: Array) -> Array:
    """A flat array, ascending."""
    return values[order(values)]


def zeros(like: Array, size: int) -> Array:
    """A flat array of zeros of the same kind, on the same device."""
    return np.zeros(size, like.dtype) if library(like) is np else like.new_zeros(size)
