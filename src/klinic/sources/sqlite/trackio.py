"""Trackio's database: one a project, a row of JSON a call of trackio.log. Schema: trackio/sqlite_storage.py of Trackio 0.43.

Alerts, traces and the machine's own numbers (system_metrics) have tables of their own and are not read.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from klinic.sources.jsonl import loads
from klinic.sources.own_step import axes_of, stepped
from klinic.sources.points import Points
from klinic.sources.rows import Reading, flatten, numbers

TABLES = {"metrics": {"run_name", "step", "metrics"}}


def runs(connection: sqlite3.Connection, tables: dict[str, set[str]]) -> dict[str, str]:
    """Run -> its name, in the order in which they began."""
    found = connection.execute(
        f"SELECT {_run(tables, 'metrics')}, run_name FROM metrics GROUP BY 1 ORDER BY min(rowid)"
    )
    return {str(run): str(name or "") for run, name in found}


def read_run(
    connection: sqlite3.Connection, tables: dict[str, set[str]], run: str, reading: Reading
) -> None:
    """Fill ``reading`` with one run's metrics and configuration."""
    if {"run_name", "config"} <= tables.get("configs", set()):
        which = _run(tables, "configs")
        for (text,) in connection.execute(
            f"SELECT config FROM configs WHERE {which} = ? ORDER BY rowid", (run,)
        ):
            for key, value in flatten(_document(text) or {}):
                if not key.startswith("_"):  # Trackio's own: _Username, _Created, _Group
                    reading.config[key.replace("/", ".")] = (value, f"{reading.at}:configs")
    logged: list[dict[str, float]] = []
    for step, text in connection.execute(
        f"SELECT step, metrics FROM metrics WHERE {_run(tables, 'metrics')} = ? ORDER BY rowid",
        (run,),
    ):
        document = _document(text)
        if document is None or not isinstance(step, int):
            reading.holds["broken lines"] += 1
            continue
        # A table, an image or a histogram is a mapping that names its type: what it counts is no metric.
        plain = {
            key: value
            for key, value in document.items()
            if not (isinstance(value, dict) and "_type" in value)
        }
        logged.append({**numbers(plain, reading.vocabulary.lists), "_step": step})
    reading.holds["rows"] += len(logged)
    points = Points()
    for at, values in stepped(logged, axes_of(logged, (), reading.vocabulary.knows)):
        for key, value in values.items():
            points.add(key, at if at is not None else 0, value)
    points.fill(reading)


def _run(tables: dict[str, set[str]], table: str) -> str:
    """The column that tells runs apart; early versions knew only names."""
    return "run_id" if "run_id" in tables[table] else "run_name"


def _document(text: Any) -> dict[str, Any] | None:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        document = loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
