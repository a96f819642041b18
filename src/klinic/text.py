"""Sentences in the two languages: those of one failure stand in its pages, the others in lang/*.toml."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from klinic.compiled import compiled, parsed, plugins

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Page:
    """One failure's page: title, one-line summary, and sentences by key."""

    slug: str
    title: str
    summary: str
    sentences: dict[str, str]


@cache
def _fronts(lang: str) -> dict[str, dict[str, Any]]:
    """Front matter of every page of the package, by slug."""
    own = sorted((Path(__file__).parent / "failures").glob(f"*.{lang}.md"))

    def make() -> dict[str, dict[str, Any]]:
        return {_slug(path): _front(path.read_text(encoding="utf-8")) for path in own}

    return dict(compiled(f"pages_{lang}", own, make))


def _slug(path: Path) -> str:
    return path.name.partition(".")[0].replace("_", "-")


def _front(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text.split("+++\n", 2)[1])


@cache
def page(slug: str, lang: str) -> Page:
    """The page of a failure, without its body. Raises FileNotFoundError where it has none."""
    head = _fronts(lang).get(slug)
    if head is None:
        head = _front(_text(slug, lang))
    return Page(slug, head["title"], head["summary"], head.get("sentences", {}))


def body(slug: str, lang: str) -> str:
    """The Markdown of a failure's page."""
    return _text(slug, lang).split("+++\n", 2)[2].strip() + "\n"


def _text(slug: str, lang: str) -> str:
    name = f"{slug.replace('-', '_')}.{lang}.md"
    place: Any = Path(__file__).parent / "failures" / name
    if not place.is_file():
        for point in plugins("klinic.failures"):
            if point.name == slug:
                from importlib.resources import files

                place = files(point.module.rpartition(".")[0] or point.module).joinpath(name)
    return str(place.read_text(encoding="utf-8"))


@cache
def common(lang: str) -> dict[str, str]:
    """Sentences that belong to no failure, by dotted key."""
    path = Path(__file__).parent / "lang" / f"{lang}.toml"
    return dict(compiled(f"lang_{lang}", [path], lambda: _flat(path)))


@cache
def sentences(package: str, lang: str) -> dict[str, str]:
    """Sentences of one package of klinic, by dotted key: ``<lang>.toml`` beside its modules."""
    return _flat(Path(__file__).parent / package / f"{lang}.toml")


def _flat(path: Path) -> dict[str, str]:
    flat: dict[str, str] = {}

    def walk(table: dict[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(parsed(path), "")
    return flat


def say(key: str, lang: str, **values: Any) -> str:
    """A common sentence, filled in."""
    return fill(common(lang)[key], values)


def in_every_language(tell: Callable[[str], str]) -> str | dict[str, str]:
    """A text by language, or once where all are the same. tell: makes it in one language."""
    told = {lang: tell(lang) for lang in LANGUAGES}
    return told["en"] if len(set(told.values())) == 1 else told


def say_in(package: str, key: str, lang: str, **values: Any) -> str:
    """A sentence of one package, filled in."""
    return fill(sentences(package, lang)[key], values)


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
