"""What a sparse curve did beyond the scatter of its own points, and which of several broke first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from klinic.curves.shape import Shape
from klinic.facts import Facts
from klinic.median import median

WINSOR = 1.4826  # median absolute difference to standard deviation (normal noise)
ROUNDING = 0.01  # of a share: evaluations are printed with two to four digits
BENT = 0.15  # part of a change: the last point that is still that near to the first level is where it begins


@dataclass(frozen=True, slots=True)
class Trend:
    """First against last points. before, after: means; error: standard error of ``change``; step: where it began."""

    before: float
    after: float
    error: float
    step: int

    @property
    def change(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def z(self) -> float:
        """Signed change over its standard error."""
        return self.change / self.error


def trend(shape: Shape) -> Trend:
    """The trend of a curve of a few points: the first sixth against the last third."""
    first, last = max(2, shape.n // 6), max(2, shape.n // 3)
    before, after = float(shape.values[:first].mean()), float(shape.values[-last:].mean())
    error = scatter(shape) * float(np.sqrt(1 / first + 1 / last)) + ROUNDING
    return Trend(before, after, error, _begin(shape, before, after))


def scatter(shape: Shape) -> float:
    """Standard deviation of one point: a trend is no noise, neighbouring points tell what is."""
    if shape.n < 2:
        return 0.0
    return WINSOR * float(median(np.abs(np.diff(shape.values)))) / float(np.sqrt(2))


def evaluations(facts: Facts, points: int) -> dict[str, Shape]:
    """Accuracies of evaluation sets by task, values in 0..1, at least ``points`` points; twins are left out."""
    found: dict[str, Shape] = {}
    for name, shape in sorted(facts.named("eval/").items(), key=lambda item: "/main/" in item[0]):
        whole = shape.values.max() <= 1.0 + 1e-6 and shape.values.min() >= 0
        if not name.endswith("/acc") or shape.n < points or not whole:
            continue
        if not any(np.array_equal(shape.values, other.values) for other in found.values()):
            found[name.removeprefix("eval/").removesuffix("/acc")] = shape
    return found


def tasks(facts: Facts, points: int) -> dict[str, Shape]:
    """Accuracies of single tasks of the training data, at least ``points`` points."""
    return {
        name.removeprefix("acc_task/"): shape
        for name, shape in facts.named("acc_task/").items()
        if shape.n >= points
    }


def fallen(
    curves: Mapping[str, Shape], least: float, errors: float, part: float = 0.0
) -> list[tuple[str, Shape, Trend]]:
    """Those that fell by ``least`` and by ``errors`` standard errors, the one that broke first first.

    part: of the worst fall; what lost less than that did not break with it, and is left out.
    """
    found: Iterable[tuple[str, Shape, Trend]] = (
        (name, shape, trend(shape)) for name, shape in curves.items()
    )
    broken = [one for one in found if one[2].change <= -least and one[2].z <= -errors]
    worst = min((one[2].change for one in broken), default=0.0)
    broken = [one for one in broken if one[2].change <= part * worst]
    return sorted(broken, key=lambda one: (one[2].step, one[2].change))


def _begin(shape: Shape, before: float, after: float) -> int:
    """The last step at which the curve was still near its first level."""
    near = BENT * abs(after - before)
    kept = shape.values >= before - near if after < before else shape.values <= before + near
    held = np.flatnonzero(kept)
    last = int(shape.steps[held[-1]]) if len(held) else int(shape.steps[0])
    return min(last, shape.onset.step) if shape.onset is not None and shape.changed else last
