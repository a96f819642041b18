"""What a change did to one curve: the changed arm against the control arm over the same steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from klinic.compare.bearing import about_one, role_for
from klinic.compare.pairs import NEAR_ZERO
from klinic.compare.parting import MEDIAN_SD
from klinic.curves.smooth import MAD_TO_SD, Array, noise, running_median, width_for
from klinic.median import median
from klinic.run import Run
from klinic.vitals import Role, players

if TYPE_CHECKING:
    from klinic.run import Steps

ENOUGH = 6  # common points in the window below which nothing is said
LONG = 20  # points of the old run from which its noise and its wandering can be told
WALK_BLOCKS = 10  # blocks of the old run from which its wandering is told
BASELINE = 8  # points before the window that say where both arms began
# Degrees of freedom that the noise within the runs counts for beside the spread between resamples: two
# resamples an arm have 2 of their own, and a spread told by 2 is off by a factor of 2 one time in four.
WITHIN_DF = 6.0


@dataclass(frozen=True, slots=True)
class Effect:
    """One curve in both arms, on the role's scale (log-quotient, share, or the metric's unit).

    before: level before the window. control, new: levels over its last half, means over the resamples, in the
    metric's unit. control_change, new_change: against ``before``, on the scale; ..._trend: inside the window;
    ..._since: against the old run's own first level. difference: new minus control; z: in standard errors.
    """

    metric: str
    unit: str
    before: float
    control: float
    new: float
    control_change: float
    new_change: float
    control_trend: float
    new_trend: float
    control_since: float
    new_since: float
    difference: float
    error: float
    sigma: float
    points: int
    resamples: tuple[int, int]

    @property
    def z(self) -> float:
        """The difference in standard errors; infinite where there is no noise."""
        if self.error <= 0:
            return 0.0 if self.difference == 0 else float(np.sign(self.difference) * np.inf)
        return self.difference / self.error


def effect(
    metric: str,
    old: Run,
    controls: Sequence[Run],
    news: Sequence[Run],
    first: int,
    last: int,
) -> Effect | None:
    """The effect over steps ``first`` to ``last``; None where fewer than 6 points are common to all arms."""
    role = role_for(metric)
    name = _common(metric, [old, *controls, *news])
    if name is None:
        return None
    arms = [_window(run, name, first, last) for run in [*controls, *news]]
    steps = arms[0][0]
    for at, _ in arms[1:]:
        steps = np.intersect1d(steps, at)
    if len(steps) < ENOUGH:
        return None
    values = [value[np.isin(at, steps)] for at, value in arms]
    plain = np.concatenate(values[: len(controls)])
    curve = old.curves[name]
    finite = np.isfinite(curve.values)
    history, history_steps = curve.values[finite], curve.steps[finite]
    floor = _floor(role, plain, values)
    scaled = [_scaled(role, v, floor) for v in values]
    past = _scaled(role, history, floor)
    earlier = past[history_steps < first][-BASELINE:]
    half = len(steps) // 2
    level = _level(role)
    ends = [level(v[-half:]) for v in scaled]
    begins = [level(v[: max(2, len(v) // 4)]) for v in scaled]
    k, m = len(controls), len(news)
    before = level(earlier) if len(earlier) >= 3 else float(np.mean(begins))
    sigma, error = _error(past, past[history_steps < first], scaled, ends, k, half)
    control, new = float(np.mean(ends[:k])), float(np.mean(ends[k:]))
    return Effect(
        metric,
        old.curves[name].metric.unit,
        float(level(history[history_steps < first][-BASELINE:]))
        if len(earlier) >= 3
        else float(np.mean([level(v[:2]) for v in values])),
        float(np.mean([level(v[-half:]) for v in values[:k]])),
        float(np.mean([level(v[-half:]) for v in values[k:]])),
        control - before,
        new - before,
        control - float(np.mean(begins[:k])),
        new - float(np.mean(begins[k:])),
        control - level(past[:BASELINE]),
        new - level(past[:BASELINE]),
        new - control,
        error,
        sigma,
        len(steps),
        (k, m),
    )


def gone(metric: str, worse: int, run: Run, before: int) -> float:
    """How much of its whole bad movement a curve had made before a step: 0 none, 1 all; 0 where it made none."""
    role, name = role_for(metric), _common(metric, [run])
    if name is None:
        return 0.0
    curve = run.curves[name]
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    earlier = values[steps < before][-BASELINE:]
    if len(values) < 3 * BASELINE or not len(earlier):
        return 0.0
    level = _level(role)
    ends = [values[:BASELINE], earlier, values[-BASELINE:]]
    floor = max(role.floor, NEAR_ZERO * max(float(median(v)) for v in ends))
    if role.scale != "log" or min(float(v.min()) for v in ends) < 0:
        first, here, last = (level(_scaled(role, v, None)) for v in ends)
    else:
        first, here, last = (level(_scaled(role, v, floor)) for v in ends)
    whole = worse * (last - first)
    return float(worse * (here - first) / whole) if whole > 0 else 0.0


def points(metric: str, run: Run, count: int) -> int:
    """How many steps hold ``count`` points of a curve; 0 where it is not logged."""
    name = _common(metric, [run])
    if name is None or len(run.curves[name].steps) < 2:
        return 0
    return count * int(median(np.diff(run.curves[name].steps)))


def _common(metric: str, runs: Sequence[Run]) -> str | None:
    """The canonical metric that plays the role in every run: never two definitions in one comparison."""
    names = players(metric, runs[0].curves) if metric not in runs[0].curves else [metric]
    return next((n for n in names if all(n in run.curves for run in runs)), None)


def _window(run: Run, name: str, first: int, last: int) -> tuple[Steps, Array]:
    curve = run.curves[name]
    inside = (curve.steps >= first) & (curve.steps <= last) & np.isfinite(curve.values)
    return curve.steps[inside], curve.values[inside]


def _floor(role: Role, control: Array, values: Sequence[Array]) -> float | None:
    """Where the logarithm is cut off; None where the role is no quotient, or goes below 0."""
    if role.scale != "log" or min(float(v.min()) for v in values) < 0:
        return None
    return max(role.floor, NEAR_ZERO * float(median(control)))


def _scaled(role: Role, values: Array, floor: float | None) -> Array:
    if about_one(role):
        return np.abs(values - 1)
    if floor is None:
        return values
    return np.asarray(np.log(np.maximum(values, floor)), dtype=np.float64)


def _level(role: Role) -> Callable[[Array], float]:
    return (lambda v: float(np.mean(v))) if role.coarse else (lambda v: float(median(v)))


def _error(
    past: Array, calm: Array, scaled: Sequence[Array], ends: Sequence[float], k: int, half: int
) -> tuple[float, float]:
    """Noise of one point, and the standard error of the difference of the two arms.

    past: the old run's whole curve; calm: the part before the window; scaled: k controls, then the changed runs.
    """
    # Only the part that is judged: before it the failure may have begun, and a step is no noise.
    arms = [_own_noise(v[-max(half, ENOUGH) :]) for v in scaled]
    earlier = noise(calm, running_median(calm, width_for(len(calm)))) if len(calm) >= LONG else None
    # The failing arm is often the noisier one: each side counts for itself.
    sides = [arms[:k], arms[k:]]
    walk = min([_walk(v, half) for v in (calm, past) if len(v) >= LONG], default=0.0)
    within, total, spread = 0.0, 0.0, 0.0
    for side, group in zip(sides, (ends[:k], ends[k:]), strict=True):
        sigma = float(np.sqrt(np.mean([s**2 for s, _ in side])))
        rho = float(np.mean([r for _, r in side]))
        if earlier is not None:
            sigma, rho = max(sigma, earlier[0]), max(rho, earlier[1])
        effective = max(1.0, half * (1 - rho) / (1 + rho))
        one = (MEDIAN_SD * sigma) ** 2 / effective + walk**2
        within += one / len(side)
        total += sigma**2
        spread += float(np.sum((np.array(group) - np.mean(group)) ** 2))
    sigma = float(np.sqrt(total / 2))
    m = len(scaled) - k
    degrees = k + m - 2
    if degrees < 1:
        return sigma, float(np.sqrt(within))
    between = spread / degrees * (1 / k + 1 / m)
    return sigma, float(np.sqrt((WITHIN_DF * within + degrees * between) / (WITHIN_DF + degrees)))


def _walk(values: Array, half: int) -> float:
    """How far a curve wanders by itself over ``half`` points, a steady trend left out.

    Told from the second differences of blocks: a fall that goes on is the failure, not wandering.
    """
    block = max(2, min(half, len(values) // WALK_BLOCKS))
    count = len(values) // block
    if count < 4:
        return 0.0
    levels = median(values[: count * block].reshape(count, block), axis=1)
    bends = np.diff(levels, 2)
    spread = MAD_TO_SD * float(median(np.abs(bends - median(bends)))) / np.sqrt(2)
    return float(spread * np.sqrt(half / block))


def _own_noise(values: Array) -> tuple[float, float]:
    """Noise of one short arm around its own trend, and the lag-1 correlation of what is left."""
    at = np.arange(len(values))
    left = values - np.polyval(np.polyfit(at, values, 1), at)
    power = float(np.dot(left, left))
    sigma = float(np.sqrt(power / max(1, len(left) - 2)))
    rho = float(np.dot(left[1:], left[:-1])) / power if power > 0 else 0.0
    return sigma, min(0.9, max(0.0, rho))
