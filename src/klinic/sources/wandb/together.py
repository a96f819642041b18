"""One or several .wandb files become one run: which number is the step, and where the console tells more.

``_step`` counts calls of wandb.log, and a trainer that logs tables or timings in calls of their own runs ahead of its
own steps (transformers logs train/global_step beside). So the trainer's own step counts where rows carry one; a row without
stands at the step of the row before it.
"""

from __future__ import annotations

import io
from collections.abc import Callable

from klinic.sources import console
from klinic.sources.rows import HEAD_CHARS, STEP_KEYS, Reading
from klinic.sources.wandb.history import History

OWN = tuple(key for key in STEP_KEYS if key != "_step")
CARRYING_SHARE = (
    0.5  # of the rows with a known metric; timings in rows of their own may outnumber them
)
LOGGED_BY_WANDB = ("_step", "_runtime", "_timestamp", "_wandb/runtime")


def joined(parts: list[tuple[str, History]], reading: Reading) -> None:
    """Fill ``reading`` from the files of one run, oldest first."""
    files = [found for _, found in sorted(parts, key=lambda part: part[1].started)]
    axes = _axes(files, reading.vocabulary.knows)
    for found in files:
        for key, value in found.settings.items():
            reading.config[key] = (value, found.at)
        if found.broken:
            reading.holds["broken records"] += found.broken
        reading.holds["rows"] += len(found.rows)
        _add(found, axes, reading)
        if found.console:
            _listen(found, reading)


def _axes(files: list[History], knows: Callable[[str], bool]) -> tuple[str, ...]:
    """Keys that hold the trainer's own step, in the order in which a row is asked for them.

    None where most rows with a known metric carry no such key: then only evaluations are logged over one of their own.
    """
    rows = [row for found in files for row in found.rows]
    held = {key for row in rows for key in row}
    defined = (key for found in files for key in found.axes if key != "_step")
    axes = tuple(
        key
        for key in dict.fromkeys([*OWN, *defined])
        if key in held and _counts({row[key] for row in rows if key in row})
    )
    known = {key for key in held if key not in axes and key not in LOGGED_BY_WANDB and knows(key)}
    metrics = [row for row in rows if not known.isdisjoint(row)] or rows
    carrying = sum(any(key in row for key in axes) for row in metrics)
    return axes if carrying >= CARRYING_SHARE * len(metrics) else ()


def _counts(values: set[float]) -> bool:
    """Whether they can be steps; one value alone says only that no step was finished, and would pile all rows up."""
    return len(values) > 1 and all(value % 1 == 0 for value in values)


def _add(found: History, axes: tuple[str, ...], reading: Reading) -> None:
    waiting: list[dict[str, float]] = []
    step: int | None = None
    for row in found.rows:
        own = next((row[key] for key in axes or ("_step",) if key in row), None)
        values = {
            key: value
            for key, value in row.items()
            if key not in LOGGED_BY_WANDB and key not in axes
        }
        if own is not None:
            step = int(own)
            for earlier in waiting:
                reading.add(step, earlier)
            waiting = []
        if step is None:
            waiting.append(values)
        else:
            reading.add(step, values)
    for number, earlier in enumerate(waiting, start=1):
        reading.numbered = "counted"
        reading.add(number, earlier)


def _listen(found: History, reading: Reading) -> None:
    """Tracebacks, printed settings and the trainer's words stand in the console; its numbers count where no row was logged."""
    alone = not reading.columns
    heard = reading if alone else Reading(found.at, reading.vocabulary)
    console.read(io.BytesIO(bytes(found.console)), b"", heard)
    reading.head += bytes(found.console[:HEAD_CHARS]).decode("utf-8", "replace")
    if alone:
        return
    for event in heard.events:
        reading.note(event.kind, event.at, event.lines)
    for key, setting in heard.config.items():
        reading.config.setdefault(key, setting)
