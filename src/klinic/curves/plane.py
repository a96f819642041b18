"""The plane of KL against what it buys (seed 001 3.2): each evaluation is a point, and the best one lies on the frontier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from klinic.curves.shape import Shape

POINTS = 6  # evaluations below which no frontier shows
FURTHER = 1.5  # times the KL of the best point that was spent after it (chosen)
FROM = 0.01  # nats/token; KL starts at 0, so a quotient means something only above this
LOST = 0.10  # of a share, and
SURE = 6.0  # standard errors (science.md 1.2 e): the best of many noisy points is too good by two or three of them


@dataclass(frozen=True, slots=True)
class Overspent:
    """KL went on from ``kl`` (at ``step``) to ``kl_end``, and the gain from ``best`` down to ``end``."""

    step: int
    kl: float
    kl_end: float
    best: float
    end: float


def overspent(kl: Shape, gain: Shape) -> Overspent | None:
    """Where the better checkpoint lies, if KL went on and the gain was lost again; None otherwise."""
    inside = (gain.smooth_steps >= kl.steps[0]) & (gain.smooth_steps <= kl.steps[-1])
    steps, value = gain.smooth_steps[inside], gain.smooth[inside]
    if len(steps) < POINTS or kl.after < FROM:
        return None
    cost = np.interp(steps, kl.smooth_steps, kl.smooth)
    best, last = int(np.argmax(value)), max(2, gain.n // 5)
    end = float(gain.values[-last:].mean())
    lost, error = float(value[best]) - end, gain.noise / np.sqrt(min(last, 8))
    if lost < max(LOST, SURE * error) or cost[-1] < FURTHER * max(cost[best], FROM):
        return None
    return Overspent(int(steps[best]), float(cost[best]), float(cost[-1]), float(value[best]), end)
