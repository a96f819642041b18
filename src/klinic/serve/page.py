"""Pages: templates with every value escaped, in the visitor's language and colours."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from klinic.render._visible import visible
from klinic.text import LANGUAGES, figure, fill, say, say_in, sentences

HERE = Path(__file__).parent
THEMES = ("auto", "light", "dark")
YEAR = 365 * 24 * 3600  # seconds a choice of language or colours is kept


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(visible=visible, figure=figure, moment=moment, iso=iso)
    return made


def warm() -> None:
    """Compile every template, so that the first visitor does not wait for it."""
    for name in _environment().list_templates():
        _environment().get_template(name)


def language(request: Request) -> str:
    """The address says it, else the visitor's earlier choice, else the browser, else the server's own."""
    for asked in (request.query_params.get("lang"), request.cookies.get("klinic-lang")):
        if asked in LANGUAGES:
            return str(asked)
    accepted = request.headers.get("accept-language", "")
    first = accepted.partition(",")[0].strip().lower()[:2]
    return first if first in LANGUAGES else str(request.app.state.lang)


def theme(request: Request) -> str:
    """auto, light or dark."""
    for asked in (request.query_params.get("theme"), request.cookies.get("klinic-theme")):
        if asked in THEMES:
            return str(asked)
    return "auto"


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template filled in. In it: ``t(key, ...)`` says a sentence, ``link(...)`` is this address with other parameters."""
    lang, colours = language(request), theme(request)

    def t(key: str, **more: Any) -> str:
        return say_in("serve", key, lang, **more)

    def link(**changes: Any) -> str:
        kept = {k: v for k, v in request.query_params.items() if k not in ("part", "token")}
        kept.update({name: str(value) for name, value in changes.items() if value is not None})
        for name, value in changes.items():
            if value is None or value == "":
                kept.pop(name, None)
        return "?" + urlencode(kept) if kept else request.url.path

    text = (
        _environment()
        .get_template(template)
        .render(
            t=t,
            say=lambda key, **more: say(key, lang, **more),
            link=link,
            lang=lang,
            theme=colours,
            path=request.url.path,
            now=time.time(),
            **values,
        )
    )
    answer = HTMLResponse(
        text, status, headers={"content-language": lang, "vary": "Cookie, Accept-Language"}
    )
    for name, chosen, allowed in (("lang", lang, LANGUAGES), ("theme", colours, THEMES)):
        if request.query_params.get(name) in allowed:
            answer.set_cookie(f"klinic-{name}", chosen, max_age=YEAR, samesite="strict")
    return answer


def wrong(request: Request, status: int, key: str, **values: Any) -> HTMLResponse:
    """A page that says what is wrong and where to go on."""
    what = say_in("serve", f"trouble.{key}", language(request), **values)
    return page(request, "trouble.html", status, what=what)


def script_words(lang: str) -> dict[str, str]:
    """The sentences that the modules in the page speak."""
    return {
        k.removeprefix("script."): v
        for k, v in sentences("serve", lang).items()
        if k.startswith("script.")
    }


def iso(seconds: float) -> str:
    """A time for machines."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def moment(seconds: float) -> str:
    """A time for people, in the server's zone."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def told_age(seconds: float, lang: str) -> str:
    """How long ago, in whole units."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= (2 * size if unit == "days" else size):
            return fill(sentences("serve", lang)[f"script.{unit}"], {"n": int(seconds // size)})
    return fill(sentences("serve", lang)["script.seconds"], {"n": max(0, int(seconds))})
