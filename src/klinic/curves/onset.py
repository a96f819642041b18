"""Where a curve began to change: a robust broken line, and the interval of breaks that fit almost as well.

One break (straight, then another slope) or two (straight, slope, plateau). Mean-shift methods are 7 to 9 % of the
run late on ramps, which hands the user a checkpoint already inside the failure (science.md 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klinic.median import median

Array = npt.NDArray[np.float64]

GRID = 24  # candidate breaks; 40 (science.md 2.2) cost twice the time and move the median onset by nothing
POINTS = 100  # points the line is fitted on; more cost time and move no break
SLACK = 1.1  # a break whose cost is within this of the best is inside the interval (science.md 2.2)
WINSOR = 3.0  # residuals beyond this many MADs count as this many
MIN_POINTS = 6


@dataclass(frozen=True, slots=True)
class Onset:
    """Step at which the change began, with the interval of steps that fit almost as well."""

    step: int
    low: int
    high: int


def onset(steps: Array, values: Array) -> Onset | None:
    """The onset of the largest change of a curve. steps, values: (n,), finite, n >= 6; None for shorter ones."""
    if len(values) < MIN_POINTS:
        return None
    if len(values) > POINTS:
        keep = np.linspace(0, len(values) - 1, POINTS).round().astype(int)
        steps, values = steps[keep], values[keep]
    span = float(steps[-1] - steps[0])
    if span <= 0 or not np.ptp(values):
        return None
    x = (steps - steps[0]) / span
    spread = float(np.std(values)) or 1.0
    y = (values - median(values)) / spread
    # From the very first interval on: a change that starts with the run has its break at 0.
    grid = _ascending([0.0, *np.quantile(x, np.linspace(0.02, 0.95, GRID)).tolist()])
    cost, breaks = _fit(x, y, grid)
    best = int(np.argmin(cost))
    fine = _ascending(
        np.clip(breaks[best, 0] + np.linspace(-1.5, 1.5, 13) / GRID, 0, 0.97).tolist()
    )
    fine_cost, fine_breaks = _fit(x, y, fine, seconds=grid)
    if fine_cost.min() <= cost[best]:
        best_break = float(fine_breaks[int(np.argmin(fine_cost)), 0])
    else:
        best_break = float(breaks[best, 0])
    every = np.concatenate(
        [
            breaks[:, 0][cost <= SLACK * cost[best]],
            fine_breaks[:, 0][fine_cost <= SLACK * cost[best]],
            [best_break],
        ]
    )
    # Only breaks joined to the best one: an equally good second change elsewhere is another story.
    near = _joined(np.sort(every), best_break, 2.5 / GRID)
    return Onset(_step(best_break, steps), _step(near[0], steps), _step(near[1], steps))


def _ascending(breaks: list[float]) -> Array:
    return np.array(sorted(set(breaks)))


def _step(at: float, steps: Array) -> int:
    wanted = steps[0] + at * (steps[-1] - steps[0])
    return int(steps[int(np.argmin(np.abs(steps - wanted)))])


def _joined(breaks: Array, centre: float, gap: float) -> tuple[float, float]:
    low = high = centre
    for b in breaks[breaks <= centre][::-1]:
        if low - b > gap:
            break
        low = float(b)
    for b in breaks[breaks >= centre]:
        if b - high > gap:
            break
        high = float(b)
    return low, high


def _fit(x: Array, y: Array, firsts: Array, seconds: Array | None = None) -> tuple[Array, Array]:
    """Costs of all pairs of breaks, second inf for none. Returns costs (c,) and breaks (c, 2)."""
    seconds = firsts if seconds is None else seconds
    pairs = [(a, b) for a in firsts for b in [*seconds[seconds > a + 0.02], np.inf]]
    breaks = np.array(pairs)
    ramp = np.maximum(0.0, x[None, :] - breaks[:, :1])
    beyond = np.where(
        np.isfinite(breaks[:, 1:]),
        np.maximum(0.0, x[None, :] - np.where(np.isfinite(breaks[:, 1:]), breaks[:, 1:], 0.0)),
        0.0,
    )
    design = np.stack([np.ones_like(ramp), np.broadcast_to(x, ramp.shape), ramp, beyond], axis=2)
    left = _solve(design, y)
    scale = 1.4826 * median(np.abs(left), axis=1, keepdims=True) + 1e-6
    # One robust pass: outliers are pulled to the fence and the line is fitted again.
    fenced = np.clip(left, -WINSOR * scale, WINSOR * scale)
    left = _solve(design, y[None, :] - left + fenced, y)
    scale = 1.4826 * median(np.abs(left), axis=1, keepdims=True) + 1e-6
    fence = WINSOR * median(scale)
    cost = np.mean(np.clip(left, -fence, fence) ** 2, axis=1)
    # A second break is one parameter more and must earn it.
    return cost * np.where(np.isfinite(breaks[:, 1]), 1.03, 1.0) + 1e-9, breaks


def _solve(design: Array, target: Array, against: Array | None = None) -> Array:
    """Residuals of least squares of many small designs: (c, n, 4) and (n,) or (c, n) -> (c, n)."""
    gram = np.matmul(design.transpose(0, 2, 1), design) + 1e-8 * np.eye(design.shape[2])
    wanted = np.broadcast_to(target, design.shape[:2])
    right = np.matmul(design.transpose(0, 2, 1), wanted[:, :, None])
    fitted = np.matmul(design, np.linalg.solve(gram, right))[:, :, 0]
    return np.asarray((wanted if against is None else against) - fitted, dtype=np.float64)
