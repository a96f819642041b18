"""Whether two curves of one metric part, and where: their difference, in the noise of the two runs themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klinic.compare.pairs import Pair
from klinic.curves.onset import onset
from klinic.curves.shape import FLAT_LEVEL, FLAT_LOG, FLAT_SHARE
from klinic.curves.smooth import MAD_TO_SD, Array, noise, running_median
from klinic.median import median

# Errors by which the smooth difference must leave 0. Ten pairs of two seeds of one tiny-trainer configuration
# (180 curves): none parts at 5, three do at 4.
PART_Z = 5.0
FEW_POINTS = (
    40  # with so few points the noise itself is badly known: sqrt(1 + 40 / n) times the errors
)
ENOUGH = 12  # common points below which a difference has no shape
WINDOW = 8  # smallest smoothing width, in points; an eighth of the curve where that is more
BLOCKS = 5  # blocks from whose steps the wandering is told; fewer tell nothing
MEDIAN_SD = 1.25  # standard error of a median over that of a mean


@dataclass(frozen=True, slots=True)
class Parting:
    """Two curves that part. step, low, high: where, and the interval that fits almost as well.

    a, b: levels where they are furthest apart, in the metric's unit. size: the difference on the role's scale
    (b minus a). z: the same in standard errors.
    """

    metric: str
    step: int
    low: int
    high: int
    a: float
    b: float
    size: float
    z: float


def part(pair: Pair) -> Parting | None:
    """Where the two curves part; None where they do not, or are too short to say."""
    n = len(pair.steps)
    if n < ENOUGH or pair.identical:
        return None
    a, b = pair.scaled
    difference = b - a
    width = max(WINDOW, n // 8) | 1
    smooth = running_median(difference, width)
    error = _error(a, b, difference, width)
    z = np.divide(smooth, error, out=_endless(smooth), where=error > 0)
    far = (np.abs(z) >= PART_Z * np.sqrt(1 + FEW_POINTS / n)) & (
        np.abs(smooth) >= _effect(pair, a, b)
    )
    if not far.any():
        return None
    crossing = int(np.argmax(far))
    furthest = int(np.argmax(np.where(far, np.abs(smooth), 0.0)))
    step, low, high = _since(pair, difference, crossing, furthest, width)
    near = slice(max(0, furthest - width // 2), furthest + width // 2 + 1)
    return Parting(
        pair.name,
        step,
        low,
        high,
        float(median(pair.a[near])),
        float(median(pair.b[near])),
        float(smooth[furthest]),
        float(z[furthest]),
    )


def _endless(values: Array) -> Array:
    """z where there is no noise at all: infinite, with the sign of the difference."""
    return np.where(values == 0, 0.0, np.copysign(np.inf, values))


def _error(a: Array, b: Array, difference: Array, width: int) -> Array:
    """Standard error of the smooth difference at each point: its noise, and how far the curves wander by themselves.

    Two healthy runs drift apart like two random walks. The calmer of the two says how far: a failing one moves
    because it fails.
    """
    sigma, rho = noise(difference, running_median(difference, 5))
    if sigma == 0:  # most points are equal (a share that is 0): the few that are not are the noise
        sigma = float(np.std(np.diff(difference))) / np.sqrt(2)
    effective = max(1.0, width * (1 - rho) / (1 + rho))
    still = MEDIAN_SD * sigma / np.sqrt(effective)
    block = max(2, min(width, len(difference) // BLOCKS))
    walk = min(wander(a, block), wander(b, block))
    blocks = np.arange(len(difference)) / block
    return np.asarray(np.sqrt(still**2 + walk**2 * blocks), dtype=np.float64)


def wander(values: Array, width: int) -> float:
    """Standard deviation of the change from one block of ``width`` points to the next, the common trend left out."""
    count = len(values) // width
    if count < BLOCKS - 1:
        return 0.0
    blocks = median(values[: count * width].reshape(count, width), axis=1)
    steps = np.diff(blocks)
    return float(MAD_TO_SD * median(np.abs(steps - median(steps))))


def _effect(pair: Pair, a: Array, b: Array) -> float:
    """The difference below which two levels count as the same."""
    if pair.role.scale == "log":
        return FLAT_LOG
    if pair.role.scale == "share":
        return FLAT_SHARE
    spread = [noise(values, running_median(values, WINDOW | 1))[0] for values in (a, b)]
    return float(FLAT_LEVEL * np.hypot(spread[0], spread[1]) / np.sqrt(2))


def _since(
    pair: Pair, difference: Array, crossing: int, furthest: int, width: int
) -> tuple[int, int, int]:
    """Where the difference began to grow; never later than where it is plain to see."""
    steps = pair.steps.astype(np.float64)
    until = min(len(difference), max(furthest, crossing) + width)
    found = onset(steps[:until], difference[:until])
    plain = int(pair.steps[crossing])
    exact = int(
        pair.steps[np.flatnonzero(pair.a != pair.b)[0]]
    )  # bitwise equal before this step: nothing parts earlier
    if found is None or found.step > plain:
        return max(exact, plain), exact, max(exact, plain)
    return (
        max(exact, found.step),
        max(exact, min(found.low, found.step)),
        max(exact, min(max(found.high, found.step), plain)),
    )
