"""Sentences in the two languages: those of one failure stand in its pages, the others in lang/*.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Page:
    """One failure's page: title, one-line summary, sentences by key, and the Markdown body."""

    slug: str
    title: str
    summary: str
    sentences: dict[str, str]
    body: str


@cache
def page(slug: str, lang: str) -> Page:
    """The page of a failure. Raises FileNotFoundError where it has none."""
    name = f"{slug.replace('-', '_')}.{lang}.md"
    place = files("klinic").joinpath("failures", name)
    if not place.is_file():
        for point in entry_points(group="klinic.failures"):
            if point.name == slug:
                place = files(point.module.rpartition(".")[0] or point.module).joinpath(name)
    text = place.read_text(encoding="utf-8")
    _, front, body = text.split("+++\n", 2)
    head = tomllib.loads(front)
    return Page(
        slug, head["title"], head["summary"], head.get("sentences", {}), body.strip() + "\n"
    )


@cache
def common(lang: str) -> dict[str, str]:
    """Sentences that belong to no failure, by dotted key."""
    flat: dict[str, str] = {}

    def walk(table: dict[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(
        tomllib.loads(files("klinic").joinpath("lang", f"{lang}.toml").read_text(encoding="utf-8")),
        "",
    )
    return flat


def say(key: str, lang: str, **values: Any) -> str:
    """A common sentence, filled in."""
    return fill(common(lang)[key], values)


def say_of(slug: str, key: str, lang: str, values: dict[str, Any]) -> str:
    """A sentence of a failure's page, filled in; the common ones are asked where the page lacks it."""
    found = page(slug, lang).sentences.get(key)
    return fill(found if found is not None else common(lang).get(f"evidence.{key}", key), values)


def fill(template: str, values: dict[str, Any]) -> str:
    """Fill ``{name}``; numbers are shortened, an unknown name stays visible."""
    return re.sub(
        r"\{(\w+)\}",
        lambda m: figure(values[m.group(1)]) if m.group(1) in values else m.group(0),
        template,
    )


def figure(value: Any) -> str:
    """A number as people write it: 1.84, 0.031, 1.2e-05, 78."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    size = abs(value)
    if isinstance(value, int) or (size >= 1 and size < 1e6 and value == round(value)):
        return f"{int(value):d}"
    if size and (size < 1e-3 or size >= 1e6):
        return f"{value:.2g}"
    if size >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if size < 10 else f"{value:.1f}"
