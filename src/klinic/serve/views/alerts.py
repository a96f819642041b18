"""Alerts: what waits for a person, and what was told before."""

from __future__ import annotations

import time
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from klinic.serve.alerts import alerts as known_alerts
from klinic.serve.alerts import count_open
from klinic.serve.page import language, page, told_age
from klinic.serve.shown import row_shown, title

PAGE = 200  # alerts shown, of those that wait and of the others
FRESH = 2.0  # seconds for which a count is true enough


async def _known(request: Request) -> list[dict[str, Any]]:
    state = request.app.state
    return await run_in_threadpool(known_alerts, state.store, state.watch_state, state.board)


async def alerts(request: Request) -> Response:
    """Those that are open, then all others, newest first."""
    lang, places = language(request), request.app.state.places
    found = await _known(request)
    only = request.query_params.get("run", "")
    shown = [
        {**a, "title": title(a["failure"], lang), "row": row_shown(a["row"], lang, places)}
        for a in found
        if not only or a["row"]["id"] == only
    ]
    waiting = [alert for alert in shown if alert["open"]]
    past = [alert for alert in shown if not alert["open"]]
    return page(
        request,
        "alerts.html",
        waiting=waiting[:PAGE],
        count=len(waiting),
        past=past[:PAGE],
        more=max(0, len(past) - PAGE),
        only=only,
        age=lambda seconds: told_age(seconds, lang),
    )


async def acknowledge(request: Request) -> Response:
    """Note that a person has seen some alerts, or that this was a mistake."""
    state, form = request.app.state, await request.form()
    do = state.store.reopen if form.get("undo") else state.store.acknowledge
    ids = {alert["id"] for alert in await _known(request)}
    for alert in form.getlist("alert"):
        if str(alert) in ids:
            await run_in_threadpool(do, str(alert))
    state.open_alerts = (0.0, 0)
    state.board.tell(())
    run = str(form.get("run") or "")
    return RedirectResponse("/alerts" + (f"?run={run}" if run.isalnum() else ""), 303)


async def count(request: Request) -> Response:
    """How many are open, for the head of every page."""
    state = request.app.state
    at, known = state.open_alerts
    if time.monotonic() - at > FRESH:
        known = count_open(await _known(request))
        state.open_alerts = (time.monotonic(), known)
    return JSONResponse({"open": known})


routes = [
    Route("/alerts", alerts),
    Route("/alerts/acknowledge", acknowledge, methods=["POST"]),
    Route("/alerts/count.json", count),
]
