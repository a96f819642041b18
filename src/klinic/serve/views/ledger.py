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
from klinic.text import common, say_in, sentences

PLAIN = (str, int, float, bool)
ROLES = ("control", "change", "on")
TONES = {
    "rescued": "healthy",
    "better": "healthy",
    "healthy": "healthy",
    "worse": "failing",
    "failed": "failing",
    "failing": "failing",
    "not-rescued": "failing",
    "caution": "caution",
    "person": "caution",
}


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
        one["said"] = sentences("serve", lang).get(f"ledger.status.{one['status']}", one["status"])
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
        "tone": TONES.get(
            str(rest.get("verdict") or rest.get("outcome") or rest.get("status")), ""
        ),
        "at": str(event.get("at", "")).replace("T", " ").partition("+")[0],
        "told": [
            (words.get(f"ledger.field.{name}", name), _value(name, value, lang))
            for name, value in rest.items()
        ],
    }


def _value(name: str, value: Any, lang: str) -> str:
    if isinstance(value, bool):
        return say_in("serve", "ledger.yes" if value else "ledger.no", lang)
    if isinstance(value, list) and all(isinstance(v, PLAIN) for v in value):
        return (" " if any(str(v).startswith("-") for v in value) else ", ").join(map(str, value))
    if isinstance(value, PLAIN):
        return _words(lang).get(f"{name}.{value}") or common(lang).get(str(value), str(value))
    return json.dumps(value, ensure_ascii=False)


def _words(lang: str) -> dict[str, str]:
    """Words of a field by "field.word"; a reason is a sentence's own key."""
    outcomes = {
        f"{field}.{key.rpartition('.')[2]}": text
        for key, text in sentences("rescue", lang).items()
        if key.startswith("rescue.outcome.")
        for field in ("outcome", "verdict")
    }
    roles = {f"role.{role}": sentences("serve", lang)[f"ledger.role.{role}"] for role in ROLES}
    return {**common(lang), **outcomes, **roles}


routes = [Route("/ledger", ledger)]
