"""The median, without numpy's own: that one imports numpy.ma (9 ms) on its first call."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def median(values: npt.ArrayLike, axis: int | None = None, keepdims: bool = False) -> Any:
    """Median of finite values along ``axis``, of all of them without one: then a float, NaN for no value."""
    array = np.asarray(values, dtype=np.float64)
    if axis is None:
        array, axis = array.ravel(), 0
    n = array.shape[axis]
    if n == 0:
        return float("nan")
    half = n // 2
    ordered = np.partition(array, half if n % 2 else (half - 1, half), axis=axis)
    middle = ordered.take(half, axis=axis)
    if not n % 2:
        middle = (middle + ordered.take(half - 1, axis=axis)) / 2
    return np.expand_dims(middle, axis) if keepdims else middle if array.ndim > 1 else float(middle)
