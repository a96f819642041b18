"""The samples of a run: by step, group and part of the reward, around the onset, and what two steps differ in."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.errors import KlinicError
from klinic.said import said
from klinic.serve.page import language, page
from klinic.serve.samples import look, take
from klinic.serve.shown import row_shown
from klinic.serve.views.run import row_of
from klinic.text import sentences

PATIENCE = (
    4.0  # seconds that a page waits for samples to be taken in, before it says so (our choice)
)
ASKED = ("show", "step", "by", "worst", "group", "text", "before", "after")
SHOWS = ("top", "onset", "search", "diff", "group")


async def rollouts(request: Request) -> Response:
    """What the address asks for; while samples are still being taken in, that."""
    row, lang, state = (
        row_of(request, request.path_params["run"]),
        language(request),
        request.app.state,
    )
    asked = {name: request.query_params.get(name, "") for name in ASKED}
    asked["show"] = show = asked["show"] if asked["show"] in SHOWS else "top"
    values: dict[str, Any] = {
        "row": row_shown(row, lang, state.places),
        "show": show,
        "asked": asked,
        "found": None,
        "busy": False,
        "why": "",
        "hint": "",
    }
    try:
        taken = await _taken(state.work, row["place"])
        if taken is None:
            values["busy"] = True
        elif taken:
            found = await state.work.answer(look, row["place"], asked, row["onset"], aside=True)
            what, hint = found["trouble"] or ("", "")
            values |= {"found": found, "why": said(what, lang), "hint": said(hint, lang)}
    except KlinicError as trouble:
        values |= {"why": said(trouble.what, lang), "hint": said(trouble.hint, lang)}
    names = sentences("rollouts", lang)
    return page(
        request,
        "rollouts.html",
        measure=lambda name: names.get(f"m.{name}", name),
        group_link=lambda name: "?" + urlencode({"show": "group", "group": name}),
        **values,
    )


async def _taken(work: Any, at: str) -> bool | None:
    """Whether there are samples; None while they are taken in. Each visit looks for what is new."""
    job = work.taking.get(at)
    if job is None:
        job = work.taking[at] = work.ask(take, at, aside=True)
    try:
        taken: bool = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(job)), PATIENCE)
    except TimeoutError:
        return None
    except Exception as trouble:
        work.taking.pop(at, None)
        if isinstance(trouble, KlinicError):
            raise
        raise KlinicError(
            "the process that read it was killed", at, "is there enough memory?"
        ) from trouble
    work.taking.pop(at, None)
    return taken


routes = [Route("/run/{run}/rollouts", rollouts)]
