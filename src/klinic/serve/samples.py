"""The samples of a run as the page asks for them; the background process beside that of the runs does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

from klinic.errors import KlinicError
from klinic.rollouts.dump import Dump
from klinic.rollouts.store import Store
from klinic.serve.asked import number
from klinic.serve.confined import within
from klinic.serve.examine import roots
from klinic.serve.plots import SMALL, Line, plot

COUNT = 10  # samples shown, of a group all
LONG = 20_000  # characters of a text that a page shows; klinic rollouts --full prints all
DRAWN = ("reward", "acc", "right", "length", "truncated", "unique", "repeated", "empty")


class Inside(Store):
    """Samples of the given folders only, whatever a link in them says: DuckDB opens files that nobody else sees."""

    def dumps(self) -> list[Dump]:
        """The files that hold samples and lie in the folders."""
        return [dump for dump in super().dumps() if within(dump.path, roots())]


def take(at: str) -> bool:
    """Take in what is new; whether there are samples. Raises KlinicError where they cannot be read."""
    store = Inside(Path(at))
    store.take()
    return bool(store.steps)


def look(at: str, asked: Mapping[str, str], onset: int | None) -> dict[str, Any]:
    """What was asked for, of what was taken in: ``steps``, ``measures``, ``plots`` by measure, and ``rows`` or ``difference``.

    asked: ``show`` is top, group, search, onset or diff, with ``step``, ``by``, ``worst``, ``group``, ``text``, ``before``
    and ``after``. A wrong one is answered with ``trouble``: what and hint.
    """
    from klinic.rollouts.query import ORDERS

    store = Inside(Path(at))
    steps = sorted(store.steps)
    parts = sorted({name for said in store.steps.values() for name in said.get("parts", {})})
    found: dict[str, Any] = {
        "steps": steps,
        "count": sum(entry.rows for entry in store.index.dumps.values()),
        "measures": list(ORDERS),
        "parts": parts,
        "plots": _plots(store, onset),
        "rows": None,
        "difference": None,
        "trouble": None,
    }
    try:
        found |= _answer(store, asked, onset)
    except KlinicError as trouble:
        found["trouble"] = (trouble.what, trouble.hint)
    return found


def _answer(store: Store, asked: Mapping[str, str], onset: int | None) -> dict[str, Any]:
    from klinic.rollouts import query

    show = asked.get("show", "top")
    if show == "diff":
        before, after = number(asked.get("before")), number(asked.get("after"))
        if before is None or after is None:
            return {}
        return {"difference": asdict(query.difference(store, before, after))}
    if show == "group":
        rows = query.group(store, asked.get("group", ""))
    elif show == "search":
        rows = query.search(store, asked.get("text", ""), COUNT) if asked.get("text") else []
    elif show == "onset":
        rows = [] if onset is None else query.around(store, onset, COUNT // 2)
    else:
        by, worst = asked.get("by") or "reward", bool(asked.get("worst"))
        rows = query.top(store, COUNT, by, number(asked.get("step")), worst)
    return {"rows": [_row(row) for row in rows]}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sample as the page shows it: numbers that are known, and texts no longer than LONG."""
    figures = {
        name: float(row[name])
        for name in ("reward", "acc", "right", "length", "truncated")
        if row[name] is not None and isfinite(float(row[name]))
    }
    texts = {name: str(row[name] or "") for name in ("prompt", "completion", "answer", "error")}
    return {
        "name": f"{row['step']}/{row['group']}/{row['row']}",
        "group": f"{row['step']}/{row['group']}" if row["group"] else "",
        "step": row["step"],
        "task": row["task"],
        "figures": figures,
        "parts": {k: v for k, v in (row["reward_parts"] or {}).items() if v is not None},
        **{name: text[:LONG] for name, text in texts.items()},
        "more": {name: max(0, len(text) - LONG) for name, text in texts.items()},
    }


def _plots(store: Store, onset: int | None) -> list[dict[str, Any]]:
    made = []
    for name in DRAWN:
        points = [
            (step, float(value))
            for step, said in sorted(store.steps.items())
            if (value := said["mean"].get(name, said.get(name))) is not None
        ]
        if len(points) < 2 or not any(value for _, value in points):
            continue
        drawn = plot(
            [Line(name, [p[0] for p in points], [p[1] for p in points])], at=onset, size=SMALL
        )
        if drawn is not None:
            made.append({"name": name, "plot": drawn})
    return made
