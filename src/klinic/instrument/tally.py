"""Numbers that can be added up over micro-batches and ranks without changing their meaning.

A mean of means is the wrong mean as soon as the parts differ in size, and they always do: responses differ in length. A Tally
keeps counts and sums, so that the parts together are the whole, whatever the order and the split.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from klinic.errors import MissingExtra
from klinic.instrument.arrays import Array, kept, library, wide

# The sketch's bins are 0.2 % wide, so a quantile is within 0.1 % of a value that was really there. For ratios the log ratio is
# sketched: 0.1 % of the distance from 1.
RELATIVE_ACCURACY = 1e-3
NOTHING = 1e-9  # smaller values count as 0 in the sketch; with it no sketch has more than some 40,000 bins


class Tally:
    """Count, mean, spread, smallest and largest of all values ever added; quantiles where asked for.

    Moments are merged by Chan, Golub and LeVeque's formula (1983) in float64 and equal those of the whole to rounding; count,
    smallest, largest and quantiles equal them exactly. Moments stay on the device of the values until they are read: adding never
    waits for a GPU, unless quantiles are kept. A NaN that the mask lets in makes the mean NaN: it is not hidden.
    """

    __slots__ = ("moments", "sketch")

    def __init__(self, quantiles: bool = False) -> None:
        self.moments: Array = np.array([0.0, 0.0, 0.0, math.inf, -math.inf])
        self.sketch: Any = new_sketch() if quantiles else None

    def add(self, values: Array, mask: Array | None = None) -> None:
        """Count these values in, those outside the mask not. values, mask: one shape, any unit."""
        values = wide(values)
        xp = library(values)
        if xp is not np:
            values = values.detach()
        keep = xp.ones_like(values, dtype=bool) if mask is None else kept(mask, values, "Tally.add")
        values, keep = xp.asarray(values, dtype=xp.float64).reshape(-1), keep.reshape(-1)
        if len(values):
            self.moments = _merged(self.moments, _moments(xp, values, keep))
        if self.sketch is not None:
            some = values[keep]
            _fill(self.sketch, some if xp is np else some.cpu().numpy())

    def merge(self, other: Tally) -> None:
        """Count in what another Tally has seen."""
        self.moments = _merged(self.moments, other.moments)
        if self.sketch is not None and other.sketch is not None:
            self.sketch.merge(copy.deepcopy(other.sketch))

    def _read(self) -> tuple[float, float, float, float, float]:
        count, mean, squares, low, high = self.moments.tolist()
        return count, mean, squares, low, high

    @property
    def count(self) -> int:
        """How many values were counted."""
        return int(self._read()[0])

    @property
    def total(self) -> float:
        """Their sum; 0 for none."""
        count, mean, *_ = self._read()
        return count * mean

    @property
    def mean(self) -> float:
        """Their mean; NaN for none."""
        count, mean, *_ = self._read()
        return mean if count else math.nan

    def var(self, ddof: int = 0) -> float:
        """Their variance, over the count minus ddof; NaN where that is not above 0."""
        count, _, squares, *_ = self._read()
        return squares / (count - ddof) if count > ddof else math.nan

    def std(self, ddof: int = 0) -> float:
        """Their standard deviation; NaN for none."""
        return math.sqrt(self.var(ddof))

    @property
    def low(self) -> float:
        """The smallest; NaN for none."""
        count, _, _, low, _ = self._read()
        return low if count else math.nan

    @property
    def high(self) -> float:
        """The largest; NaN for none."""
        count, *_, high = self._read()
        return high if count else math.nan

    @property
    def ess_fraction(self) -> float:
        """Effective sample size of the values as weights, over their number: (sum w)^2 / (n sum w^2); NaN for none."""
        square = self.mean**2 + self.var()
        return self.mean**2 / square if square > 0 else math.nan

    def quantile(self, at: float) -> float:
        """The value below which the share ``at`` lies, within 0.1 % of itself; NaN for none, or with non-finite values.

        No interpolation: of two neighbours the lower one. Raises ValueError if quantiles were not asked for.
        """
        if self.sketch is None:
            raise ValueError("this Tally keeps no quantiles: Tally(quantiles=True)")
        found = self.sketch.get_quantile_value(at)
        if found is None or self.sketch.count != self.count:
            return math.nan
        return min(max(float(found), self.low), self.high)


def _moments(xp: Any, values: Array, keep: Array) -> Array:
    held = xp.where(keep, values, xp.zeros_like(values))
    count = keep.sum()
    mean = held.sum() / (count + (count == 0))
    squares = xp.where(keep, (held - mean) ** 2, xp.zeros_like(values)).sum()
    infinite = xp.full_like(values, math.inf)
    low, high = xp.where(keep, values, infinite).min(), xp.where(keep, values, -infinite).max()
    return xp.stack([count.astype(float) if xp is np else count.double(), mean, squares, low, high])


def _merged(a: Array, b: Array) -> Array:
    if library(a) is not library(b):  # the empty one, or what came from another process
        a, b = (a, _to(a, b)) if library(b) is np else (_to(b, a), b)
    xp = library(a)
    count = a[0] + b[0]
    some = count + (count == 0)
    apart = b[1] - a[1]
    return xp.stack(
        [
            count,
            a[1] + apart * b[0] / some,
            a[2] + b[2] + apart**2 * a[0] * b[0] / some,
            xp.minimum(a[3], b[3]),
            xp.maximum(a[4], b[4]),
        ]
    )


def _to(like: Array, plain: Array) -> Array:
    """A NumPy array beside a tensor."""
    return like.new_tensor(plain.tolist())


def new_sketch() -> Any:
    """An empty DDSketch. Raises MissingExtra where the library is not installed."""
    try:
        from ddsketch import DDSketch
    except ImportError as error:
        raise MissingExtra(
            "quantiles over micro-batches need ddsketch", hint="pip install 'klinic[torch]'"
        ) from error
    return DDSketch(RELATIVE_ACCURACY)


def _fill(sketch: Any, values: Array) -> None:
    """Add finite values, counted by bin first: the library takes one number at a time."""
    from ddsketch.mapping import LogarithmicMapping

    bins = LogarithmicMapping(RELATIVE_ACCURACY)
    values = values[np.isfinite(values)]
    small = np.abs(values) < NOTHING
    if small.any():
        sketch.add(0.0, float(small.sum()))
    for sign in (1.0, -1.0):
        size = values[~small & (np.sign(values) == sign)] * sign
        keys = np.ceil(np.log(size) / math.log(bins.gamma)).astype(np.int64)
        for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
            sketch.add(sign * bins.value(int(key)), float(count))
