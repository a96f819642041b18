"""A row as a page shows it: titles in the visitor's language, paths relative to the given folders."""

from __future__ import annotations

from typing import Any

from klinic.render import _words as words
from klinic.said import said
from klinic.serve.board import Row
from klinic.serve.places import Places
from klinic.text import page, say, say_in


def row_shown(row: Row, lang: str, places: Places) -> dict[str, Any]:
    """The row with ``said`` (its status), ``title``, ``where``, ``spark_title`` and ``why`` (what cannot be read) in words."""
    what, hint = row["trouble"] or ("", "")
    return {
        **row,
        "where": places.named(row["place"]),
        "said": status(row["status"], lang),
        "title": title(row["failure"], lang),
        "act": row["action"][lang] if row["action"] else "",
        "spark_title": words.metric_title(row["spark"]["role"], lang) if row["spark"] else "",
        "why": said(what, lang),
        "hint": said(hint, lang),
    }


def status(word: str, lang: str) -> str:
    """A status in words."""
    return (
        say_in("serve", "status.unreadable", lang)
        if word == "unreadable"
        else say(f"status.{word}", lang)
    )


def title(failure: str | None, lang: str) -> str:
    """A failure's name, its slug where it has no page."""
    if not failure:
        return ""
    try:
        return page(failure, lang).title
    except OSError:
        return failure
