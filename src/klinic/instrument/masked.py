"""Means, spreads and quantiles of the tokens (or responses) that count.

What the mask leaves out is never read into a sum: a NaN there changes nothing, in the number or in its gradient. Of nothing
there is no mean: an empty mask gives NaN. Left and right padding, and holes, are the same to every function here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from klinic.instrument.arrays import Array, alike, kept, library, ordered, wide

WHITEN_FLOOR = 1e-8  # added to the std, as in the seeds' formula (A - mu) / (sigma + eps)


def masked_mean(values: Array, mask: Array, axis: int | None = None) -> Array:
    """Mean of the values where the mask is not 0; over everything (), or over one axis.

    values, mask: the same shape, any unit. NaN where the mask is empty (verl's masked_mean says 0 there, TRL's
    global_masked_mean too: a step without a response token then looks like one of entropy 0).
    """
    values = wide(values)
    keep = kept(mask, values, "masked_mean")
    xp = library(values)
    held = xp.where(keep, values, xp.zeros_like(values))
    if axis is None:
        held, keep = held.reshape(-1), keep.reshape(-1)
        axis = 0
    count = keep.sum(axis)
    return xp.where(count > 0, held.sum(axis) / (count + (count == 0)), _nan(values))[()]


def masked_sum(values: Array, mask: Array, axis: int) -> Array:
    """Sum over one axis of the values where the mask is not 0; 0 where it is empty."""
    values = wide(values)
    xp = library(values)
    return xp.where(kept(mask, values, "masked_sum"), values, xp.zeros_like(values)).sum(axis)


def masked_std(values: Array, mask: Array, ddof: int = 0) -> Array:
    """Standard deviation of the values where the mask is not 0.

    values, mask: the same shape. ddof 0 divides by the count, 1 by the count minus 1 (Bessel: torch's and verl's default). NaN
    with no more than ddof values.
    """
    values = wide(values)
    some = values[kept(mask, values, "masked_std")]
    return _std(some, ddof)


def whiten(values: Array, mask: Array, shift_mean: bool = True, ddof: int = 0) -> Array:
    """Values with mean 0 and standard deviation 1 over the mask; 0 where the mask is 0.

    values, mask: the same shape. shift_mean False keeps the mean. (x - mean) / (std + 1e-8): values that do not differ become
    0 and not noise divided by nothing. Whitening a micro-batch is not whitening the batch: gather first. verl's masked_whiten
    divides by sqrt(variance + 1e-8) with Bessel's correction, raises with fewer than two tokens and leaves numbers outside the mask.
    """
    values = wide(values)
    keep = kept(mask, values, "whiten")
    xp = library(values)
    zero = xp.zeros_like(values)
    some = values[keep]
    if len(some) <= ddof:
        return zero
    mean = some.mean()
    # Cut before dividing, too: a NaN outside the mask must not come back through the gradient.
    white = (xp.where(keep, values, zero) - mean) / (_std(some, ddof) + WHITEN_FLOOR)
    return xp.where(keep, white if shift_mean else white + mean, zero)


def masked_quantiles(values: Array, mask: Array, at: Sequence[float]) -> list[float]:
    """Quantiles of the values where the mask is not 0, with linear interpolation as in numpy.quantile.

    at: shares between 0 and 1. NaN where the mask is empty or lets a NaN in. Of one batch only: quantiles of parts cannot be averaged, see Tally.
    """
    values = wide(values)
    some = ordered(values[kept(mask, values, "masked_quantiles")])
    if not len(some) or some[-1] != some[-1]:  # a NaN is sorted last
        return [math.nan] * len(at)
    found = []
    for share in at:
        place = share * (len(some) - 1)
        low = int(place)
        a, b = float(some[low]), float(some[min(low + 1, len(some) - 1)])
        found.append(a if a == b else a + (b - a) * (place - low))
    return found


def correlation(a: Array, b: Array, mask: Array) -> Array:
    """Pearson's correlation where the mask is not 0. All of one shape. NaN where either does not vary."""
    a, b = wide(a), wide(b)
    alike(a, b, "correlation")
    keep = kept(mask, a, "correlation")
    a, b = a[keep], b[keep]
    if not len(a):
        return _nan(a)
    a, b = a - a.mean(), b - b.mean()
    size = library(a).sqrt((a * a).sum() * (b * b).sum())
    return (a * b).sum() / size if size > 0 else _nan(a)


def _std(some: Array, ddof: int) -> Array:
    if len(some) <= ddof:
        return _nan(some)
    variance = ((some - some.mean()) ** 2).sum() / (len(some) - ddof)
    return library(some).sqrt(variance)


def _nan(like: Array) -> Array:
    """NaN as an array () of the same kind."""
    xp = library(like)
    return xp.full_like(like.reshape(-1)[:0].sum(), float("nan"))
