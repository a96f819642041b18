"""One run: the report, which changes while the run grows."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.serve.board import Row
from klinic.serve.page import language, page, told_age
from klinic.serve.shown import row_shown


def row_of(request: Request, run: str) -> Row:
    """The row of a run. Raises HTTPException where there is none (any more)."""
    found: Row | None = request.app.state.board.rows.get(run)
    if found is None:
        raise HTTPException(404)
    return found


async def run(request: Request) -> Response:
    """The page; what it shows comes from ``data``."""
    row, lang = row_of(request, request.path_params["run"]), language(request)
    places = request.app.state.places
    return page(
        request,
        "run.html",
        row=row_shown(row, lang, places),
        age=lambda seconds: told_age(seconds, lang),
    )


async def data(request: Request) -> Response:
    """The report's document."""
    row = row_of(request, request.path_params["run"])
    found = await run_in_threadpool(request.app.state.store.document, row["id"])
    if found is None:
        raise HTTPException(404)
    return Response(
        found, media_type="application/json", headers={"x-changed": str(row["changed"])}
    )


routes = [Route("/run/{run}", run), Route("/run/{run}/data", data)]
