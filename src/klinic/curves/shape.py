"""What one curve did: a word, the level before and after, how sure, and since when."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from klinic.curves.onset import Onset, onset
from klinic.curves.smooth import Array, noise, reduce, running_median, width_for
from klinic.median import median
from klinic.vitals import Role

# Effect sizes below which a change is called flat, on the role's own scale: a third on the log scale, seven
# hundredths of a share (science.md 1.2 e: both the size and z must pass).
FLAT_LOG = 0.30
FLAT_SHARE = 0.07
DRIFT = 0.02  # of a ratio that should stand at 1: the lab's broken syncs move its geometric mean by 0.03 to 0.05
FLAT_LEVEL = 4.0  # in units of the curve's own noise
SURE_Z = 6.0  # science.md 1.2 e
# A surge or a plunge is "an order of magnitude within a few steps" (seed 003): a quotient that rounds to one order, and
# the middle of the change inside this share of the run, both as the curve is drawn. On the logarithm a straight rise
# from 0 looks sudden and a decay towards 0 slow.
MAGNITUDE = 10**0.5
SUDDEN = 0.15
MIDDLE = (0.2, 0.8)  # of the change: the ends are ragged
NOTHING = 0.05  # a share below this is next to none: quotients of it say nothing
SHORT = 12  # fewer points than this have no shape, only a first and a last value
LATE_BEND = 0.1  # of the run
LEVEL_TAIL = 0.34  # the last third shows whether a curve has levelled off
LEVEL_MOVE = 0.15  # of the whole change that it may still make there


@dataclass(frozen=True)
class Shape:
    """One curve, described. steps, values: (n,), finite points only, in the metric's unit.

    before, after: medians of the first and last eighth (at least 8 points where there are that many).
    change: after against before on the role's scale. z: change over its standard error, autocorrelation priced in.
    """

    role: Role
    steps: npt.NDArray[np.int64]
    values: Array

    @cached_property
    def n(self) -> int:
        """Number of finite points."""
        return len(self.values)

    @cached_property
    def _reduced(self) -> tuple[Array, Array, Array]:
        short = reduce(self.steps, self.values)
        return short.steps, short.values, running_median(short.values, width_for(len(short.values)))

    @cached_property
    def smooth(self) -> Array:
        """Running median of the (binned) curve."""
        return self._reduced[2]

    @cached_property
    def smooth_steps(self) -> Array:
        """Steps of ``smooth``."""
        return self._reduced[0]

    @cached_property
    def window(self) -> int:
        """Points in the early and the late window."""
        return max(1, min(max(8, self.n // 8), self.n // 3 or 1))

    @cached_property
    def before(self) -> float:
        """Level at the start: the run's own baseline."""
        return self._level(self.values[: self.window])

    @cached_property
    def after(self) -> float:
        """Level at the end."""
        return self._level(self.values[-self.window :])

    def _level(self, values: Array) -> float:
        return float(np.mean(values) if self.role.coarse else median(values))

    @property
    def first(self) -> float:
        """First value."""
        return float(self.values[0])

    @property
    def last(self) -> float:
        """Last value."""
        return float(self.values[-1])

    @cached_property
    def highest(self) -> float:
        """Highest level it kept: the top of the smooth curve."""
        return float(self.smooth.max())

    @cached_property
    def lowest(self) -> float:
        """Lowest level it kept."""
        return float(self.smooth.min())

    @cached_property
    def noise(self) -> float:
        """Standard deviation of the step-to-step noise, in the metric's unit."""
        _, values, smooth = self._reduced
        return noise(values, smooth)[0]

    def scaled(self, values: Array | float) -> Array:
        """Values on the role's scale: logarithm for quotients, as they are otherwise."""
        if self.role.scale == "log":
            return np.log(np.maximum(np.asarray(values, dtype=np.float64), self.role.floor))
        return np.asarray(values, dtype=np.float64)

    @cached_property
    def _scaled_noise(self) -> tuple[float, float]:
        _, values, smooth = self._reduced
        return noise(self.scaled(values), self.scaled(smooth))

    @cached_property
    def change(self) -> float:
        """After minus before on the role's scale (log-ratio, share, or units of the metric)."""
        return float(self.scaled(self.after) - self.scaled(self.before))

    def standard_error(self, points: int) -> float:
        """Of the difference of two medians over ``points`` each, autocorrelation priced in."""
        sigma, rho = self._scaled_noise
        effective = max(1.0, points * (1 - rho) / (1 + rho))
        return float(1.25 * sigma * np.sqrt(2 / effective))

    @cached_property
    def z(self) -> float:
        """Change over its standard error; infinite where the curve has no noise."""
        error = self.standard_error(self.window)
        if error <= 0:
            return float(np.inf) if self.change else 0.0
        return abs(self.change) / error

    @cached_property
    def effect(self) -> float:
        """The change below which this curve counts as flat."""
        if self.role.scale == "log":
            return FLAT_LOG
        if self.role.scale == "share":
            return FLAT_SHARE
        return max(
            FLAT_LEVEL * self._scaled_noise[0], 0.02 * max(abs(self.before), abs(self.after))
        )

    @cached_property
    def changed(self) -> bool:
        """Whether size and z both pass; z alone calls trivial drifts, size alone calls noise."""
        if self.n < SHORT:
            return abs(self.change) >= 2 * self.effect
        if self.role.scale == "level":
            return abs(self.change) > 1e-12 and self.z >= SURE_Z
        return abs(self.change) >= self.effect and self.z >= SURE_Z

    @property
    def rose(self) -> bool:
        """Ends clearly higher than it began."""
        return self.changed and self.change > 0

    @property
    def fell(self) -> bool:
        """Ends clearly lower than it began."""
        return self.changed and self.change < 0

    @cached_property
    def haste(self) -> float:
        """Share of the run that the middle of the change takes, 0 to 1."""
        whole = self.after - self.before
        begin, end = (self.crossing(self.before + part * whole, whole > 0) for part in MIDDLE)
        if begin is None or end is None:
            return 1.0
        return (end.step - begin.step) / max(int(self.steps[-1] - self.steps[0]), 1)

    @cached_property
    def sudden(self) -> bool:
        """Changed by an order of magnitude within a few steps."""
        if not self.changed or self.n < SHORT or self.before == self.after:
            return False
        least = NOTHING if self.role.scale == "share" else max(self.role.floor, self.noise)
        small = max(min(abs(self.before), abs(self.after)), least)
        if abs(self.after - self.before) < (MAGNITUDE - 1) * small:
            return False
        return self.haste <= SUDDEN

    @cached_property
    def word(self) -> str:
        """One of flat, rises, falls, surges, plunges, drifts, levels off, noisy."""
        if self.role.steady and (self.changed or self._drifted):
            return "drifts"
        if not self.changed:
            return "noisy" if self._restless else "flat"
        up = self.change > 0
        if self.sudden:
            return "surges" if up else "plunges"
        if up and self.levelled and self._drawn_level:
            return "levels off"
        return "rises" if up else "falls"

    @property
    def _drifted(self) -> bool:
        """Whether a ratio that should be 1 left it by little, and surely."""
        return self.role.scale == "share" and abs(self.change) >= DRIFT and self.z >= SURE_Z

    @cached_property
    def _restless(self) -> bool:
        """Noise as large as the level itself."""
        if self.n < SHORT:
            return False
        sigma = self._scaled_noise[0]
        if self.role.scale == "log":
            return sigma > FLAT_LOG
        return sigma > 0.25 * max(abs(self.before), abs(self.after), 1e-9)

    @cached_property
    def levelled(self) -> bool:
        """Changed earlier, and did not any more in the last third."""
        points = 3 * max(1, self._tail // 2)
        allowed = LEVEL_MOVE * abs(self.change) + self.standard_error(points)
        return self._late_move(self.scaled(self.smooth)) <= allowed

    @property
    def _tail(self) -> int:
        return max(3, int(len(self.smooth) * LEVEL_TAIL))

    def _late_move(self, smooth: Array) -> float:
        """How far the last third moves, from its first to its second half."""
        tail, half = smooth[-self._tail :], max(1, self._tail // 2)
        return abs(float(median(tail[-half:]) - median(tail[:half])))

    @property
    def _drawn_level(self) -> bool:
        """Whether it has levelled off as drawn, too: a straight rise from near 0 flattens on the logarithm alone."""
        moved = abs(self.after - self.before)
        return self.role.scale != "log" or self._late_move(self.smooth) <= LEVEL_MOVE * moved

    @cached_property
    def onset(self) -> Onset | None:
        """Where its largest change began; None for a curve too short to say."""
        at, values, _ = self._reduced
        found = onset(at, self.scaled(values))
        if self.role.scale != "log" or self.change > 0 or found is None:
            return found
        # A decay has its bend in the logarithm; a straight fall to near 0 bends there only at its end, so a
        # much earlier break of the plain curve is the right one.
        plain = onset(at, values)
        late = plain is not None and found.step - plain.step > LATE_BEND * (at[-1] - at[0])
        return plain if late else found

    def level_over(self, first: float, last: float) -> float:
        """Median between two shares of the run (0 to 1)."""
        a, b = int(first * self.n), max(int(first * self.n) + 1, int(last * self.n))
        return float(median(self.values[a:b]))

    def since(self, step: float) -> Array:
        """Values from a step on."""
        return self.values[self.steps >= step]

    def until(self, step: float) -> Array:
        """Values before a step."""
        return self.values[self.steps < step]

    def crossing(self, level: float, above: bool, keep: float = 0.8) -> Onset | None:
        """First step from which the smooth curve stays beyond ``level`` for at least ``keep`` of what follows."""
        beyond = self.smooth > level if above else self.smooth < level
        if not beyond.any():
            return None
        left = np.cumsum(beyond[::-1])[::-1] / np.arange(len(beyond), 0, -1)
        good = np.flatnonzero(beyond & (left >= keep))
        if not len(good):
            return None
        i = int(good[0])
        at = self.smooth_steps
        return Onset(int(at[i]), int(at[max(0, i - 1)]), int(at[i]))
