"""Several event files become one run: tag groups, restarts, and writers that ran side by side.

* A file that begins after another has ended continues it; where its steps go back, the newer ones count.
* Files with the same tags that were written at the same time come from several processes: their rows are averaged.
* Within one file a tag that goes back alone counts something else than the trainer's step (a batch within its epoch):
  it restarts nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from klinic.sources.points import counting_apart, rows
from klinic.sources.rows import Reading
from klinic.sources.tensorboard.events import Events

Points = tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def joined(parts: list[tuple[str, Events]], reading: Reading) -> None:
    """Fill ``reading``. parts: (tag group of the file's folder, what it says)."""
    parts = sorted(parts, key=lambda part: part[1].first)
    loose: list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []
    held: list[tuple[str, Events]] = []
    for part in parts:
        found = part[1]
        for key, value in found.settings.items():
            reading.config[key] = (value, found.at)
        reading.holds["scalars"] += len(found.values)
        if found.broken:
            reading.holds["broken records"] += found.broken
        if not len(found.values):
            continue
        if held and not any(_side_by_side(part, other) for other in held):
            _add(held, reading, loose)
            held = []
        held.append(part)
    if held:
        _add(held, reading, loose)
    for key, steps, values in loose:
        reading.put(key, steps.tolist(), values.tolist())


def _key(group: str, tag: str) -> str:
    if not group or tag == group or tag.startswith(f"{group}/"):
        return tag
    return f"{group}/{tag}"


def _keys(part: tuple[str, Events]) -> set[str]:
    return {_key(part[0], tag) for tag in part[1].tags}


def _side_by_side(one: tuple[str, Events], other: tuple[str, Events]) -> bool:
    return one[1].first < other[1].last and bool(_keys(one) & _keys(other))


def _add(
    parts: list[tuple[str, Events]],
    reading: Reading,
    loose: list[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.float64]]],
) -> None:
    keys, which, steps, values = _points(parts)
    own = counting_apart(len(keys), which, steps)
    if len(own) and len(parts) == 1:
        apart = np.isin(which, own)
        for number in own:
            taken = which == number
            loose.append((keys[number], steps[taken], values[taken]))
        which, steps, values = which[~apart], steps[~apart], values[~apart]
    rows(keys, which, steps, values, reading)


def _points(parts: list[tuple[str, Events]]) -> Points:
    """All points of files that were written side by side: of several, by step."""
    numbers: dict[str, int] = {}
    which, steps, values = [], [], []
    for group, found in parts:
        own = np.array([numbers.setdefault(_key(group, t), len(numbers)) for t in found.tags])
        which.append(own[np.frombuffer(found.which, dtype=np.int64)])
        steps.append(np.frombuffer(found.steps, dtype=np.int64))
        values.append(np.frombuffer(found.values, dtype=np.float64))
    joint = np.concatenate(which), np.concatenate(steps), np.concatenate(values)
    if len(parts) > 1:
        order = np.argsort(joint[1], kind="stable")
        joint = joint[0][order], joint[1][order], joint[2][order]
    return list(numbers), *joint
