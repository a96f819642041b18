"""The addresses of the app, and what lies behind all of them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from klinic.serve import views
from klinic.serve.board import Board
from klinic.serve.guard import Guard
from klinic.serve.page import warm, wrong
from klinic.serve.places import Places
from klinic.serve.store import Store
from klinic.serve.work import Work


def app(
    places: Places,
    state: Path,
    bound: str,
    *,
    token: str = "",
    hosts: tuple[str, ...] = (),
    lang: str = "en",
    options: dict[str, Any] | None = None,
    watch_state: Path | None = None,
    progress: Path | None = None,
) -> Guard:
    """The whole app behind its guard. Its background work begins and ends with the server.

    state: the SQLite file. watch_state: that of ``klinic watch``, whose alerts are shown too. progress: of the course.
    """
    board = Board()
    work = Work(places, board, state, options or {"mapping": {}, "trainer": None})

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        app.state.store = Store(state)
        work.start()
        warm()
        try:
            yield
        finally:
            work.stop()
            app.state.store.close()

    made = Starlette(
        routes=_routes(),
        lifespan=living,
        exception_handlers={HTTPException: _refused, Exception: _broken},
    )
    made.state.board, made.state.work, made.state.places = board, work, places
    made.state.open_alerts = (0.0, 0)  # when they were counted, and how many
    made.state.lang, made.state.watch_state, made.state.progress = lang, watch_state, progress
    return Guard(made, bound, token, hosts)


def _routes() -> list[BaseRoute]:
    found: list[BaseRoute] = []
    for module in pkgutil.iter_modules(views.__path__):
        found += importlib.import_module(f"{views.__name__}.{module.name}").routes
    return found


async def _refused(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    return wrong(request, status, "not_found" if status == 404 else "refused")


async def _broken(request: Request, problem: Exception) -> Response:
    return wrong(request, 500, "bug", what=type(problem).__name__)
