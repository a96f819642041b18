"""What a watch remembers, in one SQLite file: each run's state, every alert, and which target has had it.

A run's new state and the alerts that follow from it are one transaction: a watch that is killed either has both or neither, and works
the same alerts out again. A delivery is marked after the target took it, so a kill in between sends it once more: with the same
id, by which a receiver can tell. Nothing is ever lost.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from klinic.errors import BadUsage
from klinic.watch.monitor import State

TABLES = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, state TEXT NOT NULL, step INTEGER, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS alerts (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, run TEXT NOT NULL,
  body TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (number INTEGER NOT NULL REFERENCES alerts, target TEXT NOT NULL,
  done REAL, tried INTEGER NOT NULL DEFAULT 0, again REAL NOT NULL DEFAULT 0, trouble TEXT,
  PRIMARY KEY (number, target));
"""
# All numbers here are our choice.
BUSY = 30.0  # seconds to wait for another process that writes
FIRST_WAIT, LONGEST_WAIT = 1.0, 300.0  # seconds between attempts; doubled each time


def home() -> Path:
    """Where the state lies if nobody says otherwise."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "klinic" / "watch.sqlite"


def opened(place: Path, tables: str, *pragmas: str) -> sqlite3.Connection:
    """A connection to a state of klinic, for one thread at a time. Raises BadUsage where the file cannot be opened or is no such database."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(place, timeout=BUSY, isolation_level=None, check_same_thread=False)
        for pragma in pragmas:
            db.execute(pragma)
        db.executescript(tables)
    except (OSError, sqlite3.Error) as trouble:
        raise BadUsage(
            f"cannot be opened: {trouble}", str(place), "name another file with --state"
        ) from None
    return db


class Memory:
    """One connection to the state, for one thread at a time. Raises BadUsage where the file cannot be opened or is no such database."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.db = opened(place, TABLES, "PRAGMA synchronous = FULL")

    def close(self) -> None:
        """Close the connection."""
        self.db.close()

    def state(self, run: str) -> State:
        """What is remembered of a run; a new State for one that was never seen."""
        with closing(self.db.execute("SELECT state FROM runs WHERE run = ?", (run,))) as found:
            row = found.fetchone()
        try:
            return msgspec.json.decode(row[0], type=State) if row else State()
        except msgspec.DecodeError:  # written by a newer klinic
            return State()

    def remember(
        self, run: str, state: State, alerts: Sequence[dict[str, Any]], targets: Sequence[str]
    ) -> None:
        """A run's new state and its alerts, for these targets, in one transaction. An alert whose id is known is left out."""
        now = time.time()
        self.db.execute("BEGIN IMMEDIATE")
        try:
            for alert in alerts:
                body = msgspec.json.encode(alert).decode()
                new = self.db.execute(
                    "INSERT OR IGNORE INTO alerts (id, run, body, at) VALUES (?, ?, ?, ?)",
                    (alert["id"], run, body, now),
                )
                if new.rowcount:
                    self.db.executemany(
                        "INSERT INTO deliveries (number, target) VALUES (?, ?)",
                        [(new.lastrowid, target) for target in targets],
                    )
            self.db.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)",
                (run, msgspec.json.encode(state).decode(), state.last, now),
            )
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise

    def due(self, target: str) -> tuple[int, dict[str, Any], int] | None:
        """(number, alert, attempts so far) of the oldest alert a target has not had, if it may be tried now.

        In order: what a target has not taken holds back what came after it.
        """
        with closing(
            self.db.execute(
                "SELECT number, body, tried, again FROM deliveries JOIN alerts USING (number) "
                "WHERE target = ? AND done IS NULL ORDER BY number LIMIT 1",
                (target,),
            )
        ) as found:
            row = found.fetchone()
        if row is None or row[3] > time.time():
            return None
        return row[0], msgspec.json.decode(row[1]), row[2]

    def delivered(self, number: int, target: str) -> None:
        """A target has taken an alert."""
        self.db.execute(
            "UPDATE deliveries SET done = ?, trouble = NULL WHERE number = ? AND target = ?",
            (time.time(), number, target),
        )

    def failed(self, number: int, target: str, tried: int, trouble: str) -> float:
        """It has not; returns the seconds until it is tried again."""
        wait = min(FIRST_WAIT * 2.0**tried, LONGEST_WAIT)
        self.db.execute(
            "UPDATE deliveries SET tried = ?, again = ?, trouble = ? WHERE number = ? AND target = ?",
            (tried + 1, time.time() + wait, trouble[:500], number, target),
        )
        return wait

    def waiting(self, target: str) -> int:
        """How many alerts a target has not had."""
        with closing(
            self.db.execute(
                "SELECT COUNT(*) FROM deliveries WHERE target = ? AND done IS NULL", (target,)
            )
        ) as found:
            return int(found.fetchone()[0])
