"""The healthy band of each metric, relative to the run's own early level, and which steps lie outside it.

Values: science.md 2.4, where this band left 210 healthy runs quiet. Healthy reinforcement learning is not stationary, so a
detector that asks "has it changed?" (CUSUM, Page-Hinkley) alarms on every healthy run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from klinic.facts import Facts
from klinic.run import Run

EARLY = 15  # points of the own early level: no step before is judged (science.md 2.4)
LAG = 20  # points by which KL's own level lags, since a healthy KL rises from 0
KL_FLOOR = 1e-4  # nats/token: eight times next to nothing is still nothing

Array = npt.NDArray[np.float64]
Outside = Callable[[Array], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Band:
    """When a step is outside. level: whether an absolute number is compared, which needs a metric of known definition."""

    outside: Outside
    level: bool = False


def _early(values: Array) -> float:
    return float(np.median(values[:EARLY]))


def _below(share: float) -> Band:
    return Band(lambda v: v < share * _early(v))


def _above(times: float, floor: float = 0.0) -> Band:
    return Band(lambda v: v > times * max(_early(v), floor))


def _surge(times: float, floor: float) -> Band:
    def outside(values: Array) -> npt.NDArray[np.bool_]:
        level = np.full(len(values), np.inf)
        if len(values) > LAG + EARLY:
            windows = np.lib.stride_tricks.sliding_window_view(values[: -LAG - 1], EARLY)
            level[LAG + EARLY :] = np.maximum(np.median(windows, axis=1), floor)
        return values > times * level

    return Band(outside)


BANDS: dict[str, Band] = {
    "entropy": _below(0.4),
    "kl": _surge(8.0, KL_FLOOR),
    "clip_frac": Band(lambda v: v > 0.2, level=True),
    "ratio_mean": Band(lambda v: np.abs(v - 1) > 0.05, level=True),
    "adv_std": Band(lambda v: v < 0.3, level=True),
    "trunc": Band(lambda v: v > _early(v) + 0.12, level=True),
    "grad_norm": _above(4.0),
    "len": _above(3.0),
    "value_loss": _above(5.0),
    "mismatch": _above(6.0, 1e-4),
}


def outside(run: Run) -> dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Role -> (steps, whether each lies outside its band), of the steps after the early ones."""
    facts = Facts(run)
    found = {}
    for role, band in BANDS.items():
        shape = facts.level(role) if band.level else facts.shape(role)
        if shape is not None and shape.n > EARLY:
            flags = band.outside(shape.values)
            found[role] = (shape.steps[EARLY:], flags[EARLY:])
    return found
