"""All runs, worst first; what is shown stands in the address."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.serve.asked import number
from klinic.serve.board import ORDER, Row
from klinic.serve.page import language, page, told_age
from klinic.serve.shown import row_shown

PAGE = 100  # rows a page
SORTS = ("worst", "newest", "name", "steps")


async def runs(request: Request) -> Response:
    """The list, or with ``part=rows`` its rows alone, which the page asks for when something has changed."""
    query, board = request.query_params, request.app.state.board
    everything = board.worst_first()
    counts = {status: sum(row["status"] == status for row in everything) for status in ORDER}
    failures = sorted({row["failure"] for row in everything if row["failure"]})
    trainers = sorted({row["trainer"] for row in everything if row["trainer"]})
    chosen = _sorted([row for row in everything if _wanted(row, query)], query.get("sort", ""))
    pages = max(1, -(-len(chosen) // PAGE))
    at = min(max(1, number(query.get("page")) or 1), pages)
    lang = language(request)
    places = request.app.state.places
    return page(
        request,
        "runs_rows.html" if query.get("part") == "rows" else "runs.html",
        rows=[row_shown(row, lang, places) for row in chosen[(at - 1) * PAGE : at * PAGE]],
        found=len(chosen),
        all=len(everything),
        counts=counts,
        failures=failures,
        trainers=trainers,
        waiting=board.waiting,
        begun=request.app.state.work.scanned.is_set(),
        at=at,
        pages=pages,
        sorts=SORTS,
        age=lambda seconds: told_age(seconds, lang),
        given={name: query.get(name, "") for name in ("q", "status", "failure", "trainer", "sort")},
        roots=places.roots,
    )


def _wanted(row: Row, query: Any) -> bool:
    for name in ("status", "failure", "trainer"):
        if query.get(name) and row[name] != query[name]:
            return False
    words = query.get("q", "").lower().split()
    text = f"{row['name']} {row['place']} {row['failure'] or ''} {row['trainer']}".lower()
    return all(word in text for word in words)


def _sorted(rows: list[Row], by: str) -> list[Row]:
    if by == "newest":
        return sorted(rows, key=lambda row: -row["changed"])
    if by == "name":
        return sorted(rows, key=lambda row: (row["name"].lower(), row["place"]))
    if by == "steps":
        return sorted(rows, key=lambda row: -(row["last"] or 0))
    return rows


routes = [Route("/", runs)]
