"""What happens within a row or two: isolated spikes, and levels that jump and stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klinic.curves.shape import Shape
from klinic.curves.smooth import MAD_TO_SD, Array, running_median
from klinic.median import median

WIDEST = 3  # rows of a spike (failure_modes.json: isolated, one to three steps)
AROUND = 8  # rows on each side that say what the level is
LEAST = 0.5  # of the run's median, the least a spike's height is measured by
PART = 0.25  # of all that the level ever moves, the least a jump makes up (our choice; a ramp over half a run: 0.1)
ABRUPT = 0.7  # share of a jump that must be there from one row to the next but one


@dataclass(frozen=True, slots=True)
class Spike:
    """An excursion of at most three rows that came back. height: times the level around it."""

    first: int
    last: int
    height: float
    top: float
    level: float


@dataclass(frozen=True, slots=True)
class Jump:
    """A level that changed between two rows. z: of the curve's own noise; before, after: medians of eight rows."""

    step: int
    before: float
    after: float
    z: float


def spikes(shape: Shape, times: float, sure: float) -> list[Spike]:
    """Rows ``times`` above the level around them and ``sure`` noise units out, back at that level afterwards. O(n)."""
    if shape.n < 2 * AROUND:
        return []
    values = shape.values
    level = running_median(values, 2 * AROUND + 1)
    # Rows at 0 (a batch without variance) are no level to stand out from: the run's own has a say as well.
    usual = values[values > 0]
    least = max(shape.role.floor, LEAST * float(median(usual)) if len(usual) else 0.0)
    excess = shape.scaled(values) - shape.scaled(level)
    sigma = MAD_TO_SD * float(median(np.abs(excess)))
    high = (values >= times * np.maximum(level, least)) & (excess >= sure * sigma)
    found = []
    for a, b in _stretches(high):
        if b - a > WIDEST or a < WIDEST or b + WIDEST > len(values):
            continue
        top = float(values[a:b].max())
        base = max(float(median(level[a:b])), least)
        found.append(Spike(int(shape.steps[a]), int(shape.steps[b - 1]), top / base, top, base))
    return found


def _stretches(flags: np.typing.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def jump(shape: Shape) -> Jump | None:
    """The largest change of level that happened between two rows; None where the curve has none. O(n)."""
    n = shape.n
    if n < 2 * AROUND:
        return None
    values = shape.scaled(shape.values)
    windows = np.lib.stride_tricks.sliding_window_view(values, AROUND)
    levels = np.asarray(median(windows, axis=1), dtype=np.float64)
    change = levels[AROUND:] - levels[:-AROUND]  # between rows i - 1 and i, for i from AROUND on
    size = float(change[int(np.argmax(np.abs(change)))])
    # Windows that reach over the edge see the same change: the edge itself is where three rows on each side differ most.
    narrow = median(np.lib.stride_tricks.sliding_window_view(values, 3), axis=1)
    near = narrow[AROUND : n - AROUND + 1] - narrow[AROUND - 3 : n - AROUND - 2]
    i = int(np.argmax(near * np.sign(size)))
    if size == 0 or near[i] / size < ABRUPT or change[i] / size < ABRUPT:
        return None
    at, size = i + AROUND, float(change[i])
    if abs(size) < PART * float(np.ptp(levels)):
        return None  # one stretch of a ramp
    before = values[at - AROUND : at]
    # The noise before the jump alone: a larger scale is noisier itself.
    sigma = max(_spread(before), MAD_TO_SD * _middling(np.diff(values[:at])) / np.sqrt(2))
    z = abs(size) / sigma if sigma > 0 else float(np.inf)
    raw = shape.values
    return Jump(
        int(shape.steps[at]),
        float(median(raw[at - AROUND : at])),
        float(median(raw[at : at + AROUND])),
        z,
    )


def _spread(values: Array) -> float:
    return MAD_TO_SD * _middling(values)


def _middling(values: Array) -> float:
    """Median distance from the median."""
    return float(median(np.abs(values - median(values))))


def change_at(shape: Shape, step: float) -> tuple[float, float]:
    """(change, z) of the level across ``step``: the rows from it on against those before; (0, 0) where there are too few."""
    before, after = shape.until(step)[-AROUND:], shape.since(step)[:AROUND]
    if len(before) < AROUND // 2 or len(after) < AROUND // 2:
        return 0.0, 0.0
    size = float(median(after) - median(before))
    sigma = max(_spread(before), _spread(after), shape.noise)
    return size, abs(size) / sigma if sigma > 0 else (float(np.inf) if size else 0.0)


def departure(shape: Shape, step: float) -> float:
    """How many noise units the row at ``step`` lies off the rows around it, signed; 0 where it has no such row."""
    i = int(np.searchsorted(shape.steps, step))
    if i >= shape.n or shape.steps[i] != step:
        return 0.0
    around = np.r_[shape.values[max(0, i - AROUND) : i], shape.values[i + 1 : i + 1 + AROUND]]
    if len(around) < AROUND:
        return 0.0
    sigma = max(_spread(around), shape.noise)
    off = float(shape.values[i] - median(around))
    return off / sigma if sigma > 0 else (float(np.sign(off)) * np.inf if off else 0.0)
