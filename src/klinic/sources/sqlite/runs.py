"""Whose database it is, and how its runs are called."""

from __future__ import annotations

import sqlite3

from klinic.errors import UnreadableInput
from klinic.sources.rows import Reading, told_apart
from klinic.sources.sqlite import mlflow, trackio


def fill(connection: sqlite3.Connection, reading: Reading) -> None:
    """Fill ``reading`` with the database's run, or a part of it with each of several."""
    tables = columns_of(connection)
    for tracker in (mlflow, trackio):
        if all(columns <= tables.get(table, set()) for table, columns in tracker.TABLES.items()):
            runs = tracker.runs(connection, tables)
            for run, name in told_apart(runs).items():
                part = reading if len(runs) == 1 else reading.part(name)
                part.name = name
                tracker.read_run(connection, tables, run, part)
            return
    if {"tag", "experiment", "chart"} <= tables.keys():
        raise UnreadableInput(
            "SwanLab's index of runs, without their numbers",
            reading.at,
            "name the folder it lies in, or a run's folder (run-DATE-ID)",
        )
    raise UnreadableInput(
        "a database without a tracker's tables",
        reading.at,
        "klinic reads MLflow's and Trackio's; of another, export the metrics as CSV (step, key, value)",
    )


def columns_of(connection: sqlite3.Connection) -> dict[str, set[str]]:
    """Table -> its columns."""
    found = connection.execute(
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table'"
    )
    tables: dict[str, set[str]] = {}
    for table, column in found:
        tables.setdefault(table, set()).add(column)
    return tables
