"""One or several .wandb files become one run, oldest first; the console tells more."""

from __future__ import annotations

from klinic.sources.console import listen
from klinic.sources.own_step import axes_of, stepped
from klinic.sources.rows import Reading
from klinic.sources.wandb.history import History


def joined(parts: list[tuple[str, History]], reading: Reading) -> None:
    """Fill ``reading`` from the files of one run, oldest first."""
    files = [found for _, found in sorted(parts, key=lambda part: part[1].started)]
    axes = axes_of(
        [row for found in files for row in found.rows],
        [key for found in files for key in found.axes if key != "_step"],
        reading.vocabulary.knows,
    )
    for found in files:
        for key, value in found.settings.items():
            reading.config[key] = (value, found.at)
        if found.broken:
            reading.holds["broken records"] += found.broken
        reading.holds["rows"] += len(found.rows)
        _add(found, axes, reading)
        if found.console:
            listen(bytes(found.console), found.at, reading)


def _add(found: History, axes: tuple[str, ...], reading: Reading) -> None:
    number = 0
    for step, values in stepped(found.rows, axes):
        if step is None:
            number += 1
            reading.numbered = "counted"
        reading.add(number if step is None else step, values)
