"""Two runs side by side."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.errors import KlinicError
from klinic.said import said
from klinic.serve.page import language, page, wrong
from klinic.serve.shown import row_shown
from klinic.serve.versus import versus
from klinic.serve.views.run import row_of

KEPT = 32  # comparisons in memory
_known: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


async def compare(request: Request) -> Response:
    """The comparison of ``a`` and ``b``; without both, a choice of runs."""
    lang, state = language(request), request.app.state
    rows = sorted(state.board.worst_first(), key=lambda row: (row["name"].lower(), row["place"]))
    readable = [row_shown(row, lang, state.places) for row in rows if row["status"] != "unreadable"]
    chosen = {side: request.query_params.get(side, "") for side in ("a", "b")}
    values: dict[str, Any] = {
        "rows": readable,
        "chosen": chosen,
        "found": None,
        "a": None,
        "b": None,
        "why": "",
    }
    if chosen["a"] and chosen["b"]:
        a, b = (row_of(request, chosen[side]) for side in ("a", "b"))
        places = [state.work.place_of(row) for row in (a, b)]
        if None in places:
            return wrong(request, 404, "not_found")
        key = (a["id"], a["changed"], a["last"], b["id"], b["changed"], b["last"], lang)
        if key not in _known:
            try:
                _known[key] = await state.work.answer(
                    versus, places[0], a["id"], places[1], b["id"], lang
                )
            except KlinicError as trouble:
                values["why"] = said(trouble.what, lang)
            while len(_known) > KEPT:
                _known.popitem(last=False)
        values["found"] = _known.get(key)
        values["a"], values["b"] = (row_shown(row, lang, state.places) for row in (a, b))
    return page(request, "compare.html", **values)


routes = [Route("/compare", compare)]
