"""The rows of all runs in memory, and who wants to know when one changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from typing import Any

from klinic.diagnosis import STATUSES
from klinic.failures import SEVERITIES

Row = dict[str, Any]
ORDER = (*STATUSES, "unreadable")
PAUSE = 0.25  # seconds between two events to one page, at least (our choice)


class Board:
    """Filled by one thread, read by the pages. version: counts the changes."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.of_place: dict[str, list[str]] = {}
        self.waiting = 0
        self.version = 0
        self.ended = False
        self._listeners: dict[asyncio.Event, tuple[asyncio.AbstractEventLoop, set[str]]] = {}
        self._lock = threading.Lock()

    def put(self, place: str, rows: Iterable[Row]) -> None:
        """All runs of a place, in place of those that were known."""
        new = {row["id"]: row for row in rows}
        old = set(self.of_place.get(place, ()))
        with self._lock:
            for run in old - new.keys():
                self.rows.pop(run, None)
            self.rows.update(new)
            self.of_place[place] = list(new)
            if not new:
                del self.of_place[place]
        self.tell({*old, *new})

    def tell(self, runs: Iterable[str]) -> None:
        """Something about these runs has changed."""
        with self._lock:
            self.version += 1
            listeners = list(self._listeners.items())
            for _, (_, news) in listeners:
                news.update(runs)
        for event, (loop, _) in listeners:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:  # the loop has ended, and with it the page
                continue

    def end(self) -> None:
        """Nothing more will be told."""
        self.ended = True
        self.tell(())

    def worst_first(self) -> list[Row]:
        """Every row: by status, then severity, then the newest."""
        with self._lock:
            rows = list(self.rows.values())
        return sorted(rows, key=rank)

    async def news(self) -> AsyncIterator[list[str]]:
        """The ids of the runs that have changed, whenever some have."""
        event, news = asyncio.Event(), set[str]()
        with self._lock:
            self._listeners[event] = (asyncio.get_running_loop(), news)
        try:
            while True:
                await event.wait()
                if self.ended:
                    return
                event.clear()
                with self._lock:
                    told = sorted(news)
                    news.clear()
                yield told
                await asyncio.sleep(PAUSE)
        finally:
            with self._lock:
                del self._listeners[event]


def rank(row: Row) -> tuple[int, int, float]:
    """Worst first; of equals the one that changed last."""
    severity = row.get("severity")
    return (
        ORDER.index(row["status"]),
        SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES),
        -row["changed"],
    )
