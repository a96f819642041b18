"""Server-sent events: which runs have changed, told to every page that is open."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.serve.board import Board

PING = 15  # seconds between two signs of life (our choice)


async def events(request: Request) -> Response:
    """A stream without end: ``{"runs": [ids], "version": n, "waiting": n}``."""
    from sse_starlette import EventSourceResponse

    board: Board = request.app.state.board

    async def told() -> AsyncIterator[dict[str, Any]]:
        yield {"event": "hello", "data": json.dumps({"version": board.version})}
        async for runs in board.news():
            body = {"runs": runs, "version": board.version, "waiting": board.waiting}
            yield {"event": "news", "data": json.dumps(body)}

    return EventSourceResponse(told(), ping=PING)


routes = [Route("/events", events)]
