"""The pages of the failures, their curves drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from klinic.failures import cards
from klinic.serve.drawn import drawn
from klinic.serve.page import language, page
from klinic.text import body, say_in
from klinic.text import page as failure_page


async def failures(request: Request) -> Response:
    """All of them, family by family."""
    lang, families = language(request), dict[str, list[dict[str, str]]]()
    counts: dict[str, int] = {}
    for row in request.app.state.board.worst_first():
        if row["failure"]:
            counts[row["failure"]] = counts.get(row["failure"], 0) + 1
    for slug, card in cards().items():
        told = failure_page(slug, lang)
        families.setdefault(card.family, []).append(
            {"slug": slug, "title": told.title, "summary": told.summary}
        )
    return page(
        request,
        "failures.html",
        families=families,
        counts=counts,
        family_title=lambda family: say_in("serve", f"family.{family}", lang),
    )


async def failure(request: Request) -> Response:
    """One page."""
    slug, lang = request.path_params["slug"], language(request)
    if slug not in cards():
        raise HTTPException(404)
    rows = [row for row in request.app.state.board.worst_first() if row["failure"] == slug]
    told = failure_page(slug, lang)
    return page(request, "failure.html", told=told, pieces=pieces(slug, lang), rows=rows)


@cache
def pieces(slug: str, lang: str) -> tuple[dict[str, Any], ...]:
    """The page in order: ``html`` of its prose, and ``curves`` that are drawn. Markup in the text itself is not obeyed."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    found: list[dict[str, Any]] = []
    prose: list[Any] = []

    def close() -> None:
        if prose:
            found.append({"html": reader.renderer.render(prose, reader.options, {})})
            prose.clear()

    for token in reader.parse(body(slug, lang)):
        if token.type == "fence" and token.info.strip() == "curves":
            close()
            found.append({"curves": drawn(token.content, lang), "text": token.content})
        else:
            _link(token)
            prose.append(token)
    close()
    return tuple(found)


def _link(token: Any) -> None:
    """Lead from a failure's name in the prose to its page."""
    from markdown_it.token import Token

    children = token.children or []
    for i in reversed(range(len(children))):
        if children[i].type == "code_inline" and children[i].content in cards():
            where: dict[str, str | int | float] = {"href": f"/failures/{children[i].content}"}
            children[i + 1 : i + 1] = [Token("link_close", "a", -1)]
            children[i:i] = [Token("link_open", "a", 1, attrs=where)]


routes = [Route("/failures", failures), Route("/failures/{slug}", failure)]
