"""Points of several keys, as a tracker logged them one by one, become the rows of a run.

* A step that goes back is a restart, for all keys (see :class:`klinic.sources.rows.Reading`). A key that goes back more often
  than most counts something else than the trainer's step (a batch within its epoch): it restarts nothing.
* Of two values of one key at one step the later counts: the run was resumed, or logged it again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from klinic.sources.rows import Reading

STEP_LIMIT = 1 << 62  # no run gets there; a damaged number does


class Points:
    """Grows point by point. times: when each was logged, in any unit; needed only where the keys did not come in turn."""

    __slots__ = ("keys", "steps", "times", "values", "which")

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}
        self.which, self.steps, self.values = array("q"), array("q"), array("d")
        self.times = array("q")

    def add(self, key: str, step: int, value: float) -> None:
        """Add one point; one whose step is no number of steps is left out."""
        if -STEP_LIMIT < step < STEP_LIMIT:
            self.which.append(self.keys.setdefault(key, len(self.keys)))
            self.steps.append(step)
            self.values.append(value)

    def add_at(self, key: str, step: int, value: float, time: int) -> None:
        """Add one point that was logged at a known time."""
        if -STEP_LIMIT < step < STEP_LIMIT:
            self.add(key, step, value)
            self.times.append(min(max(time, -STEP_LIMIT), STEP_LIMIT))

    def extend(
        self,
        key: str,
        steps: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
        times: npt.NDArray[np.int64],
    ) -> None:
        """Add many points of one key."""
        number = self.keys.setdefault(key, len(self.keys))
        inside = np.abs(steps) < STEP_LIMIT
        self.which.extend([number] * int(inside.sum()))
        self.steps.frombytes(steps[inside].astype(np.int64).tobytes())
        self.values.frombytes(values[inside].astype(np.float64).tobytes())
        self.times.frombytes(times[inside].astype(np.int64).tobytes())

    def logged(self) -> Iterator[tuple[str, int, float]]:
        """Every point: (key, step, value)."""
        keys = list(self.keys)
        for number, step, value in zip(self.which, self.steps, self.values, strict=True):
            yield keys[number], step, value

    def take(self, other: Points, known: bool) -> None:
        """Add another's points; known: those of keys that are here already, too."""
        for key, number in other.keys.items():
            if known or key not in self.keys:
                taken = np.frombuffer(other.which, dtype=np.int64) == number
                self.extend(
                    key,
                    np.frombuffer(other.steps, dtype=np.int64)[taken],
                    np.frombuffer(other.values, dtype=np.float64)[taken],
                    np.frombuffer(other.times, dtype=np.int64)[taken],
                )

    def fill(self, reading: Reading) -> None:
        """Add all points to ``reading``."""
        if not len(self.values):
            return
        which = np.frombuffer(self.which, dtype=np.int64)
        steps = np.frombuffer(self.steps, dtype=np.int64)
        values = np.frombuffer(self.values, dtype=np.float64)
        order = np.argsort(which, kind="stable")
        key, step = which[order], steps[order]
        same = key[1:] == key[:-1]
        later = np.r_[~(same & (step[1:] == step[:-1])), True]  # none follows at the same step
        if len(self.times) == len(steps):
            order = order[later]
            order = order[
                _in_turn(which[order], steps[order], np.frombuffer(self.times, "q")[order])
            ]
        else:
            order = np.sort(order[later])
        which, steps, values = which[order], steps[order], values[order]
        keys = list(self.keys)
        if not reading.columns and not _back(which, steps)[1].any():
            reading.add_columns(_columns(keys, which, steps, values))
            return
        apart = counting_apart(len(keys), which, steps)
        turning = ~np.isin(which, apart)
        rows(keys, which[turning], steps[turning], values[turning], reading)
        for number in apart:  # after the restarts, which would cut them
            taken = which == number
            at, last = np.unique(steps[taken][::-1], return_index=True)
            reading.put(keys[number], at.tolist(), values[taken][::-1][last].tolist())


def _in_turn(
    which: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], times: npt.NDArray[np.int64]
) -> npt.NDArray[np.intp]:
    """The order in which points were logged. which, ...: each key's points together, in the order of the key.

    A key's own order holds even if the clock went back. Of one time the points before a key's restart come first, and then
    those of the lower step: whole histories are sometimes written at once.
    """
    restarts = np.zeros(len(steps), dtype=np.int64)
    begins = np.flatnonzero(np.r_[True, which[1:] != which[:-1]])
    for begin, end in zip(begins, np.r_[begins[1:], len(which)], strict=True):
        restarts[begin + 1 : end] = np.cumsum(steps[begin + 1 : end] < steps[begin : end - 1])
        times[begin:end] = np.maximum.accumulate(times[begin:end])
    return np.lexsort((steps, restarts, times))


def _columns(
    keys: list[str],
    which: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
) -> dict[str, tuple[array[int], array[float]]]:
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(keys)))[:-1]
    return {
        key: (array("q", at.tobytes()), array("d", found.tobytes()))
        for key, at, found in zip(
            keys, np.split(steps[order], ends), np.split(values[order], ends), strict=True
        )
    }


def rows(
    keys: list[str],
    which: npt.NDArray[np.int64],
    steps: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    reading: Reading,
) -> None:
    """Add points in the order given: those of one step that follow each other are a row."""
    row: dict[str, float] = {}
    at = 0
    for number, step, value in zip(which.tolist(), steps.tolist(), values.tolist(), strict=True):
        key = keys[number]
        if step != at or key in row:
            reading.add(at, row)
            row, at = {}, step
        row[key] = value
    reading.add(at, row)


def counting_apart(
    n_keys: int, which: npt.NDArray[np.int64], steps: npt.NDArray[np.int64]
) -> npt.NDArray[np.intp]:
    """Numbers of the keys that go back more often than most: theirs is no step of the trainer."""
    key, back = _back(which, steps)
    going_back = np.bincount(key[back], minlength=n_keys)
    curves = np.bincount(which, minlength=n_keys) > 2  # a run's last words are logged once
    if not curves.any():
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(going_back > np.median(going_back[curves]))


def _back(
    which: npt.NDArray[np.int64], steps: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """(key, whether its step goes back) of every point but the first, each key's points together."""
    order = np.argsort(which, kind="stable")
    key, step = which[order], steps[order]
    return key[1:], (key[1:] == key[:-1]) & (step[1:] < step[:-1])
