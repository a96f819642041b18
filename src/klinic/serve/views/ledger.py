"""What ``klinic rescue`` did to which run, event by event."""

from __future__ import annotations

import json
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.serve.ledgers import ledgers
from klinic.serve.page import language, page
from klinic.serve.shown import title
from klinic.text import sentences

PLAIN = (str, int, float, bool)


async def ledger(request: Request) -> Response:
    """Every ledger; the newest is open."""
    state, lang = request.app.state, language(request)
    found = await run_in_threadpool(ledgers, state.places.roots)
    runs = {row["place"]: row for row in state.board.worst_first()}
    for one in found:
        one["where"] = state.places.named(one["folder"])
        one["run_row"] = runs.get(one["run"])
        one["run_where"] = state.places.named(one["run"])
        one["title"] = title(one["failure"], lang)
        one["events"] = [_event(event, lang) for event in one["events"]]
    return page(request, "ledger.html", ledgers=found)


def _event(event: dict[str, Any], lang: str) -> dict[str, Any]:
    words = sentences("serve", lang)
    kind = event["event"]
    rest = {
        k: v for k, v in event.items() if k not in ("event", "at") and v not in (None, "", [], {})
    }
    return {
        "kind": kind,
        "title": words.get(f"ledger.event.{kind}", kind),
        "at": str(event.get("at", "")).replace("T", " ").partition("+")[0],
        "told": [
            (words.get(f"ledger.field.{name}", name), _value(value)) for name, value in rest.items()
        ],
    }


def _value(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(v, PLAIN) for v in value):
        return ", ".join(map(str, value)) if len(value) < 4 else " ".join(map(str, value))
    return str(value) if isinstance(value, PLAIN) else json.dumps(value, ensure_ascii=False)


routes = [Route("/ledger", ledger)]
