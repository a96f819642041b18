"""Whether two curves move together or part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klinic.curves.shape import Shape
from klinic.median import median

SPLITS = 16  # candidate steps after which the curves may part


@dataclass(frozen=True, slots=True)
class Parting:
    """After ``step`` one curve went on and the other did not: z scores of both changes from there to the end."""

    step: int
    leader_z: float
    follower_z: float
    leader_change: float
    follower_change: float


def correlation(a: Shape, b: Shape) -> float:
    """Correlation of two smooth curves on their common steps, 0 where there are fewer than five."""
    common, ia, ib = np.intersect1d(a.steps, b.steps, return_indices=True)
    if len(common) < 5:
        return 0.0
    x, y = a.scaled(a.values[ia]), b.scaled(b.values[ib])
    if not np.ptp(x) or not np.ptp(y):
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def change_between(shape: Shape, first: float, last: float) -> tuple[float, float]:
    """(change, signed z) of a curve between two steps, from the medians of a window at each end."""
    inside = (shape.steps >= first) & (shape.steps <= last)
    values = shape.scaled(shape.values[inside])
    if len(values) < 4:
        return 0.0, 0.0
    window = max(2, len(values) // 6)
    change = float(median(values[-window:]) - median(values[:window]))
    error = shape.standard_error(window)
    if error <= 0:
        return change, 0.0 if change == 0 else float(np.sign(change)) * np.inf
    return change, change / error


def parting(leader: Shape, follower: Shape, leader_z: float, follower_z: float) -> Parting | None:
    """The earliest split after which ``leader`` rises by ``leader_z`` errors or more while ``follower`` rises by less
    than ``follower_z`` (science.md 2.2); None where they never part."""
    last = float(min(leader.steps[-1], follower.steps[-1]))
    first = float(max(leader.steps[0], follower.steps[0]))
    best: Parting | None = None
    for split in np.linspace(first, first + 0.85 * (last - first), SPLITS):
        up, up_z = change_between(leader, split, last)
        along, along_z = change_between(follower, split, last)
        if up_z >= leader_z and along_z < follower_z:
            found = Parting(int(split), up_z, along_z, up, along)
            if best is None or up_z - along_z > best.leader_z - best.follower_z:
                best = found
    return best
