"""What is known of every run, kept in one SQLite file between starts: rows, reports, alerts, acknowledgements.

The alerts and the monitors' states are tables of :class:`klinic.watch.state.Memory` in the same file; their run keys are
those of ``klinic watch``, so that an alert both have worked out is one alert.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from klinic import __version__
from klinic.watch.state import opened

# Raised with every change of what is kept: older results are then worked out again.
VERSION = f"{__version__}/1"
TABLES = """
CREATE TABLE IF NOT EXISTS results (id TEXT PRIMARY KEY, place TEXT NOT NULL, stamp TEXT NOT NULL, row TEXT NOT NULL, doc BLOB);
CREATE INDEX IF NOT EXISTS results_of_place ON results (place);
CREATE TABLE IF NOT EXISTS acknowledged (alert TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


def home() -> Path:
    """Where it lies if nobody says otherwise: beside the state of ``klinic watch``."""
    from klinic.watch.state import home as watch_home

    return watch_home().with_name("serve.sqlite")


class Store:
    """One connection, for one thread at a time. Raises BadUsage where the file cannot be opened or is no such database."""

    def __init__(self, path: Path) -> None:
        self.path, new = path, not path.exists()
        self.db = opened(path, TABLES, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL")
        if new:
            os.chmod(path, 0o600)  # it holds the token

    def close(self) -> None:
        """Close the connection."""
        self.db.close()

    def rows_of(self, places: Iterable[str]) -> dict[str, tuple[str, list[dict[str, Any]]]]:
        """Place -> its files' stamp and its rows, of the places asked for that are known."""
        wanted = set(places)
        found: dict[str, tuple[str, list[dict[str, Any]]]] = {}
        for place, stamp, row in self._all("SELECT place, stamp, row FROM results"):
            if place in wanted:
                found.setdefault(place, (stamp, []))[1].append(json.loads(row))
        return found

    def keep(
        self, place: str, stamp: str, rows: Sequence[tuple[dict[str, Any], bytes | None]]
    ) -> None:
        """All runs of a place, in place of those that were known. rows: (row, report as JSON)."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.execute("DELETE FROM results WHERE place = ?", (place,))
            self.db.executemany(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)",
                [
                    (
                        row["id"],
                        place,
                        stamp,
                        json.dumps(row),
                        zlib.compress(doc, 6) if doc else None,
                    )
                    for row, doc in rows
                ],
            )
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def document(self, run: str) -> bytes | None:
        """The report of a run as JSON, None where there is none."""
        found = next(self._all("SELECT doc FROM results WHERE id = ?", run), None)
        return zlib.decompress(found[0]) if found and found[0] else None

    def alerts(self) -> Iterator[tuple[str, str, str, float]]:
        """(id, run's key, body as JSON, time) of every alert, newest first; none where nothing was ever remembered."""
        return alerts_in(self.db)

    def acknowledge(self, alert: str) -> None:
        """A person has seen it."""
        self.db.execute("INSERT OR IGNORE INTO acknowledged VALUES (?, ?)", (alert, time.time()))

    def reopen(self, alert: str) -> None:
        """It was acknowledged by mistake."""
        self.db.execute("DELETE FROM acknowledged WHERE alert = ?", (alert,))

    def acknowledged(self) -> dict[str, float]:
        """Alert -> when it was acknowledged."""
        return dict(self._all("SELECT alert, at FROM acknowledged"))

    def once(self, name: str, value: str) -> str:
        """The value kept under a name; ``value`` from now on, where there was none."""
        self.db.execute("INSERT OR IGNORE INTO kept VALUES (?, ?)", (name, value))
        return str(next(self._all("SELECT value FROM kept WHERE name = ?", name))[0])

    def _all(self, question: str, *values: Any) -> Iterator[Any]:
        with closing(self.db.execute(question, values)) as found:
            yield from found.fetchall()


def alerts_in(db: sqlite3.Connection) -> Iterator[tuple[str, str, str, float]]:
    """The alerts in a state of ``klinic watch``, newest first; none where it has no such table."""
    try:
        with closing(
            db.execute("SELECT id, run, body, at FROM alerts ORDER BY number DESC")
        ) as found:
            yield from found.fetchall()
    except sqlite3.OperationalError:
        return
