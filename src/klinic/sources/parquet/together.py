"""Parquet files of one folder become runs: a run's own column tells which, else the files are logs of one run."""

from __future__ import annotations

from typing import Any

from klinic.sources.parquet.table import Table
from klinic.sources.points import Points
from klinic.sources.rows import Reading, told_apart


def joined(tables: list[Table], reading: Reading) -> None:
    """Fill ``reading``, or a part of it for each of several runs."""
    points: dict[str, Points] = {}
    names: dict[str, str] = {}
    settings: dict[str, dict[str, tuple[Any, str]]] = {}
    # Of tables that name no run the longest leads, as of any logs of one run; the others add what it lacks.
    for table in sorted(
        tables, key=lambda table: -sum(len(p.values) for p in table.points.values())
    ):
        if table.samples:
            reading.rollouts = True
            reading.holds["samples"] += table.samples
        if table.without_step:
            reading.holds["rows without a step"] += table.without_step
        for run, found in table.points.items():
            if found.keys:
                if run in points:
                    points[run].take(found, known=bool(run))
                else:
                    points[run] = found
                names[run] = table.names.get(run, run) or names.get(run, "")
            for key, value in table.settings.get(run, {}).items():
                settings.setdefault(run, {})[key] = (value, table.at)
    called = told_apart({run: names[run] for run in points}) if len(points) > 1 else names
    for run, found in points.items():
        part = reading if len(points) == 1 else reading.part(called[run])
        part.name = called[run]
        part.config.update(settings.get(run, {}))
        part.holds["rows"] += len(found.values)
        if any(table.counted for table in tables if run in table.points):
            part.numbered = "counted"
        found.fill(part)
