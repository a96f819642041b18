"""One or several SwanLab files become one run, oldest first; the console tells more."""

from __future__ import annotations

from klinic.sources.console import listen
from klinic.sources.points import Points
from klinic.sources.rows import Reading
from klinic.sources.swanlab.history import History


def joined(parts: list[tuple[str, History]], reading: Reading) -> None:
    """Fill ``reading`` from the files of one run."""
    points: Points | None = None
    files = [found for _, found in sorted(parts, key=lambda part: part[1].started)]
    for found in files:
        reading.name = found.name or reading.name
        if found.broken:
            reading.holds["broken records"] += found.broken
        reading.holds["rows"] += len(found.scalars.values)
        if points is None:
            points = found.scalars
            continue
        for key, step, value in found.scalars.logged():
            points.add(key, step, value)
    if points is not None:
        points.fill(reading)
    for found in files:
        if found.console:
            listen(bytes(found.console), found.at, reading)
