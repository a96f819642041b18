"""Which curves of two runs may be compared at all: the same metric, measured the same way, on common steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klinic.curves.smooth import Array
from klinic.median import median
from klinic.run import Curve, Metric, Run
from klinic.vitals import ROLES, VITALS, Role, players

# These follow from the settings or say nothing of the policy's health.
LEFT_OUT = ("lr", "loss")
# Log-quotients of what is nearly 0 are noise: below a tenth of the larger level two values count as equal.
# (KL starts at 0 in every run, and two seeds of one configuration differ there by any factor.)
NEAR_ZERO = 0.1
COARSE_WIDTH = 9  # shares over few groups jump between a handful of values; their means do not


@dataclass(frozen=True)
class Pair:
    """One metric of two runs. steps: (n,), common to both; a, b: (n,), finite, in the metric's unit."""

    role: Role
    name: str
    steps: npt.NDArray[np.int64]
    a: Array
    b: Array

    @cached_property
    def scaled(self) -> tuple[Array, Array]:
        """Both on the role's scale; a steady role (a ratio that should be 1) as it is."""
        a, b = self.a, self.b
        if self.role.scale == "log" and min(a.min(initial=0.0), b.min(initial=0.0)) >= 0:
            floor = max(self.role.floor, NEAR_ZERO * max(float(median(a)), float(median(b))))
            a, b = np.log(np.maximum(a, floor)), np.log(np.maximum(b, floor))
        if self.role.coarse and len(a) > COARSE_WIDTH:
            a, b = running_mean(a, COARSE_WIDTH), running_mean(b, COARSE_WIDTH)
        return a, b

    @property
    def identical(self) -> bool:
        """Whether every value is bitwise the same."""
        return bool(np.array_equal(self.a, self.b))


@dataclass(frozen=True, slots=True)
class Unlike:
    """A role that both runs log, measured in two ways: never compared."""

    role: str
    a: Metric
    b: Metric


def pairs(a: Run, b: Run) -> tuple[list[Pair], list[Unlike]]:
    """Curves that may be compared, vital ones first, and roles whose definitions differ."""
    found: list[Pair] = []
    unlike: list[Unlike] = []
    taken: set[str] = set()
    for name in [*VITALS, *(r for r in ROLES if r not in VITALS and r not in LEFT_OUT)]:
        ours, theirs = players(name, a.curves), players(name, b.curves)
        if not ours or not theirs:
            continue
        common = next((n for n in ours if n in theirs and _alike(a, b, n)), None)
        if common is None:
            unlike.append(Unlike(name, a.curves[ours[0]].metric, b.curves[theirs[0]].metric))
            continue
        if common in taken:  # one metric may play two roles
            continue
        taken.add(common)
        pair = _pair(ROLES[name], name, a.curves[common], b.curves[common])
        if pair is not None:
            found.append(pair)
    for name in a.curves:  # evaluations beside the first
        if name.startswith("eval/") and name in b.curves and name not in taken:
            pair = _pair(ROLES["acc"], name, a.curves[name], b.curves[name])
            if pair is not None:
                found.append(pair)
    return found, unlike


def running_mean(values: Array, width: int) -> Array:
    """Running mean of odd ``width``, ends repeated. values: (n,)."""
    padded = np.pad(values, width // 2, mode="edge")
    return np.asarray(np.convolve(padded, np.full(width, 1 / width), "valid"), dtype=np.float64)


def _alike(a: Run, b: Run, name: str) -> bool:
    """Whether one canonical name means the same in both: an unknown definition only under one key of one trainer."""
    one, other = a.curves[name].metric, b.curves[name].metric
    if one.unit != other.unit:
        return False
    vague = name.endswith("/unknown") or "not comparable" in (one.conversion, other.conversion)
    return not vague or (a.trainer.name == b.trainer.name and one.source_key == other.source_key)


def _pair(role: Role, name: str, one: Curve, other: Curve) -> Pair | None:
    common, ia, ib = np.intersect1d(one.steps, other.steps, return_indices=True)
    a, b = one.values[ia], other.values[ib]
    finite = np.isfinite(a) & np.isfinite(b)
    return Pair(role, name, common[finite], a[finite], b[finite]) if finite.any() else None
