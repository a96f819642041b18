"""Curves as short text: steps as differences, values as 32-bit floats, both in base64 and little-endian."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from klinic.run import Curve

if TYPE_CHECKING:
    from klinic.run import Steps, Values

FULL = 100_000  # points of a curve that has a panel of its own: below this nothing is left out (our choice)
SHORT = 1_000  # points of every other curve, so that a log of 300 metrics still makes a file to mail (our choice)


class Encoder:
    """Encodes curves; those that share their steps name the same grid."""

    def __init__(self) -> None:
        self.grids: list[dict[str, Any]] = []
        self._known: dict[bytes, int] = {}

    def curve(self, curve: Curve, points: int) -> dict[str, Any]:
        """``{"grid": i, "values": base64}`` of at most about ``points`` points, every spike kept."""
        steps, values = curve.steps, curve.values
        if len(steps) > 1 and bool((np.diff(steps) <= 0).any()):
            order = np.argsort(steps, kind="stable")
            steps, values = steps[order], values[order]
        if len(values) > points:
            kept = extremes(values, points // 2)
            steps, values = steps[kept], values[kept]
        return {"grid": self._grid(steps), "values": floats(values)}

    def _grid(self, steps: Steps) -> int:
        raw = steps.tobytes()
        if raw not in self._known:
            self._known[raw] = len(self.grids)
            self.grids.append(grid(steps))
        return self._known[raw]


def grid(steps: Steps) -> dict[str, Any]:
    """Increasing steps: first, number, and the common difference or all of them in the smallest width that holds them."""
    n = len(steps)
    if not n:
        return {"first": 0, "n": 0, "by": 1}
    gaps = np.diff(steps)
    first = int(steps[0])
    if not len(gaps) or bool((gaps == gaps[0]).all()):
        return {"first": first, "n": n, "by": int(gaps[0]) if len(gaps) else 1}
    most = int(gaps.max())
    width = 1 if most < 1 << 8 else 2 if most < 1 << 16 else 4
    return {"first": first, "n": n, "width": width, "gaps": _text(gaps.astype(f"<u{width}"))}


def floats(values: Values) -> str:
    """Base64 of 32-bit floats; what is out of their range becomes an infinity, as it would be drawn."""
    with np.errstate(over="ignore"):
        return _text(values.astype("<f4"))


def extremes(values: Values, bins: int) -> npt.NDArray[np.intp]:
    """Indices, increasing, of the lowest and the highest value of each of ``bins`` equal bins, and of both ends. values: (n,), NaN allowed."""
    n = len(values)
    starts = np.linspace(0, n, bins + 1).astype(np.intp)[:-1]
    bad = ~np.isfinite(values)
    which = np.repeat(np.arange(bins), np.diff(np.append(starts, n)))
    found = [np.array([0, n - 1])]
    for fill, ufunc in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        filled = np.where(bad, fill, values)
        hit = np.flatnonzero(filled == ufunc.reduceat(filled, starts)[which])
        # The first of equal values stands for its bin.
        found.append(hit[np.unique(which[hit], return_index=True)[1]])
    if bad.any():
        # One that was not finite is kept a bin: a gap must not be closed.
        hit = np.flatnonzero(bad)
        found.append(hit[np.unique(which[hit], return_index=True)[1]])
    return np.unique(np.concatenate(found))


def _text(array: npt.NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")
