"""Every alert that is known: the server's own and those of ``klinic watch``; the same one told twice is one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from klinic.serve.board import Board
from klinic.serve.store import Store, alerts_in

MOST = 2000  # newest alerts that are looked at


def alerts(store: Store, watch_state: Path | None, board: Board) -> list[dict[str, Any]]:
    """Newest first, of the runs on the board: each with ``row``, ``acknowledged`` (when, or None) and ``open``.

    open: the newest of its run and failure, not resolved and not acknowledged.
    """
    runs = {row["key"]: row for row in list(board.rows.values())}
    seen = store.acknowledged()
    found: dict[str, dict[str, Any]] = {}
    for rows in (list(store.alerts()), _of_watch(watch_state)):
        for id_, key, body, at in rows[:MOST]:
            if key in runs and id_ not in found:
                found[id_] = {
                    **json.loads(body),
                    "at": at,
                    "row": runs[key],
                    "acknowledged": seen.get(id_),
                }
    ordered = sorted(found.values(), key=lambda alert: -alert["at"])
    newest: set[tuple[str, str]] = set()
    for alert in ordered:
        of = (alert["row"]["key"], alert["failure"] or alert["metric"])
        latest = of not in newest
        newest.add(of)
        alert["open"] = latest and alert["state"] != "resolved" and alert["acknowledged"] is None
    return ordered


def count_open(found: Iterable[dict[str, Any]]) -> int:
    """How many wait for a person."""
    return sum(alert["open"] for alert in found)


def _of_watch(state: Path | None) -> list[tuple[str, str, str, float]]:
    """What a watch on this machine has told; its state is only read."""
    if state is None or not state.exists():
        return []
    try:
        with closing(
            sqlite3.connect(f"{state.resolve().as_uri()}?mode=ro", uri=True, timeout=1.0)
        ) as db:
            return list(alerts_in(db))
    except sqlite3.Error:
        return []
