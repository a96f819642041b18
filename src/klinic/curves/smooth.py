"""Long curves made short and noisy ones readable, without moving an edge."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klinic.median import median

Array = npt.NDArray[np.float64]

BINS = 400  # a curve longer than this is judged on its bin medians (science.md 2.1)
MAD_TO_SD = 1.4826


@dataclass(frozen=True, slots=True)
class Reduced:
    """A curve of at most ``BINS`` points. steps, values: (m,), bin medians; low, high: (m,), so that spikes survive."""

    steps: Array
    values: Array
    low: Array
    high: Array


def reduce(steps: npt.NDArray[np.int64], values: Array) -> Reduced:
    """Bin medians with the lowest and highest value of each bin. steps, values: (n,), all finite. O(n)."""
    n = len(values)
    if n <= BINS:
        at = steps.astype(np.float64)
        return Reduced(at, values, values, values)
    edges = np.linspace(0, n, BINS + 1).astype(np.int64)
    width = n // BINS
    # Equal bins of ``width`` as one matrix; the few points left over go into the last bin's ends.
    core = values[: BINS * width].reshape(BINS, width) if n % BINS == 0 else None
    if core is not None:
        return Reduced(
            median(steps.reshape(BINS, width), axis=1),
            median(core, axis=1),
            core.min(axis=1),
            core.max(axis=1),
        )
    pieces = [(values[a:b], steps[a:b]) for a, b in itertools.pairwise(edges)]
    return Reduced(
        np.array([median(s) for _, s in pieces]),
        np.array([median(v) for v, _ in pieces]),
        np.array([v.min() for v, _ in pieces]),
        np.array([v.max() for v, _ in pieces]),
    )


def running_median(values: Array, width: int) -> Array:
    """Running median of odd ``width``, ends repeated: kills isolated spikes, keeps edges. values: (n,)."""
    if len(values) < 3 or width < 3:
        return values
    half = min(width // 2, (len(values) - 1) // 2)
    padded = np.concatenate(
        [
            np.full(half, median(values[: half + 1])),
            values,
            np.full(half, median(values[-half - 1 :])),
        ]
    )
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(median(windows, axis=1), dtype=np.float64)


def width_for(n: int) -> int:
    """The smoothing width for n points: max(5, n/25) (science.md 2.2)."""
    return max(5, n // 25) | 1


def noise(values: Array, smooth: Array) -> tuple[float, float]:
    """Standard deviation of the noise, and the lag-1 correlation of what the smooth curve leaves.

    The first differences alone would underestimate correlated noise, the residuals alone would count a sharp
    edge; the larger of the two robust estimates is taken.
    """
    if len(values) < 4:
        return 0.0, 0.0
    differences = np.diff(values)
    by_difference = (
        MAD_TO_SD * float(median(np.abs(differences - median(differences)))) / np.sqrt(2)
    )
    left = values - smooth
    by_residual = MAD_TO_SD * float(median(np.abs(left - median(left))))
    centred = left - left.mean()
    power = float(np.dot(centred, centred))
    rho = float(np.dot(centred[1:], centred[:-1])) / power if power > 0 else 0.0
    return max(by_difference, by_residual), min(0.9, max(0.0, rho))
