"""Which of the logs that lie in one folder are one run.

* Where one begins beyond the first step of another whose name differs in its numbers only (``slurm-4711.out`` and
  ``slurm-4712.out``, ``train_1.log`` and ``train_2.log``), the run went on in it. So it did from ``train.log.2`` to
  ``train.log.1`` to ``train.log``, as rotated logs are named.
* Logs that put other numbers under the same names at the same steps are of different runs, unless their names say that
  each is a process's. All others are one run: two processes, or one run printed twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from klinic.sources.rows import Column, Reading

if TYPE_CHECKING:
    import numpy.typing as npt

_NUMBER = re.compile(r"\d+")
_ROTATED = re.compile(r"(?<=[^\d.])\.(\d{1,3})$")
_SUFFIX = re.compile(r"\.(out|err|log|txt|jsonl?|csv|tsv)$")
_OUT_OR_ERR = re.compile(r"\.[oe](?=\d+(\.\d+)?$)")  # train.o4711 and train.e4711 are one job's
_PROCESS = re.compile(r"rank|worker|proc|node|gpu|local|actor|engine", re.IGNORECASE)
# Our choices, tried on the shared folders: two processes of one run share a clock, its copies nearly all numbers.
SHARED_KEYS = 0.5  # of the smaller log's metrics
MIN_COMMON = 5  # steps at which both logs have a value
FOUR_DIGITS = 5e-4  # relative: what "%.4g" of transformers' console leaves out
COARSEST, DECIMALS = 2, 8  # decimals that are printed; a column that needs more was not rounded
AGREEING = 0.5  # of the common values; different runs agree by chance in constants only


def runs_of(readings: Sequence[Reading]) -> list[Reading]:
    """The readings of one folder, those that go on joined; of several runs each a part of its own, by its file's name."""
    whole = [reading for reading in readings if reading.parts or reading.name]
    logs = _joined([reading for reading in readings if not (reading.parts or reading.name)])
    groups: list[list[Reading]] = []
    for reading in sorted(logs, key=lambda reading: -reading.logged):
        home = next((group for group in groups if _fits(reading, group)), None)
        if home is None:
            groups.append([reading])
        else:
            home.append(reading)
    if len(groups) < 2:
        return [*whole, *logs]
    for group in groups:
        for reading in group:
            container = Reading(reading.at, reading.vocabulary)
            container.parts[_stem(group[0])] = reading
            whole.append(container)
    return whole


def _joined(readings: Sequence[Reading]) -> list[Reading]:
    """The readings, those in which a run goes on put behind its earlier ones."""
    families: dict[str, list[Reading]] = {}
    for reading in readings:
        family = _NUMBER.sub("#", _ROTATED.sub("", Path(reading.at).name))
        families.setdefault(family, []).append(reading)
    kept: list[Reading] = []
    for members in families.values():
        current: Reading | None = None
        for reading in sorted(members, key=lambda reading: _age(Path(reading.at).name)):
            if current is not None and _goes_on(current, reading):
                current.go_on(reading)
                continue
            kept.append(reading)
            current = reading if reading.logged else current
    return kept


def _goes_on(earlier: Reading, later: Reading) -> bool:
    if earlier.first_step is None or later.first_step is None:
        return False
    return _alike(earlier, later) and later.first_step > earlier.first_step


def _alike(a: Reading, b: Reading) -> bool:
    """Whether they log the same metrics: two processes of one run share a clock and little else."""
    common = a.columns.keys() & b.columns.keys()
    return len(common) >= SHARED_KEYS * min(len(a.columns), len(b.columns))


def _fits(reading: Reading, group: list[Reading]) -> bool:
    if _stem(reading) == _stem(group[0]) or not reading.logged:
        return True
    return not any(_apart(reading, other) for other in group)


def _apart(a: Reading, b: Reading) -> bool:
    """Whether two logs are of different runs: as often, at the same steps, under the same names, other numbers."""
    if (
        # Rows without a step of their own may stand at another's, as those of a resumed run do.
        (a.numbered, b.numbered) != ("logged", "logged")
        or (_PROCESS.search(Path(a.at).name) and _PROCESS.search(Path(b.at).name))
        or not _alike(a, b)
    ):
        return False
    agreeing = []
    for key in a.columns.keys() & b.columns.keys():
        found = _agreement(a.columns[key], b.columns[key])
        if found is not None:
            agreeing.append(found)
    return bool(agreeing) and float(np.median(agreeing)) < AGREEING


def _agreement(a: Column, b: Column) -> float | None:
    """The share of common steps at which two columns agree; None where they cannot be compared."""
    steps_a, steps_b = np.asarray(a.steps), np.asarray(b.steps)
    common, at_a, at_b = np.intersect1d(steps_a, steps_b, return_indices=True)
    # One that is logged more rarely may hold means over several steps of the other.
    if len(common) < MIN_COMMON or len(common) < min(len(steps_a), len(steps_b)) / 2:
        return None
    if max(len(steps_a), len(steps_b)) > 2 * len(common) and steps_a[0] == steps_b[0]:
        return None
    x, y = np.asarray(a.values)[at_a], np.asarray(b.values)[at_b]
    if np.all(x == x[0]) and np.all(y == y[0]):
        return None
    rounded = 0.51 * 10.0 ** -min(_decimals(x), _decimals(y))
    with np.errstate(invalid="ignore"):
        same = np.isclose(x, y, rtol=FOUR_DIGITS, atol=rounded, equal_nan=True)
    return float(same.mean())


def _decimals(values: npt.NDArray[np.float64]) -> int:
    """How many decimals the values were printed with, at most."""
    finite = values[np.isfinite(values)]
    for decimals in range(COARSEST, DECIMALS):
        if np.allclose(np.round(finite, decimals), finite, rtol=1e-9, atol=0):
            return decimals
    return DECIMALS


def _stem(reading: Reading) -> str:
    return _OUT_OR_ERR.sub(".", _SUFFIX.sub("", Path(reading.at).name))


def rotated(place: Path) -> list[Path]:
    """What a log that is rotated was before: ``train.log.2``, ``train.log.1``, the oldest first."""
    try:
        beside = [path for path in place.parent.iterdir() if path.name.startswith(place.name)]
    except OSError:
        return []
    return sorted(
        (path for path in beside if _ROTATED.sub("", path.name) == place.name != path.name),
        key=lambda path: _age(path.name),
    )


def _age(name: str) -> tuple[tuple[int, ...], int]:
    """By this the logs of one family are in the order in which they were written."""
    found = _ROTATED.search(name)
    numbers = tuple(int(number) for number in _NUMBER.findall(_ROTATED.sub("", name)))
    return numbers, -int(found.group(1)) if found else 0
