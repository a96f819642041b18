"""The course's own sentences, one file a language; a test keeps their keys and placeholders equal."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from klinic.text import fill


@cache
def content(lang: str) -> dict[str, Any]:
    """Every text of a language by dotted key; a list (of hints) stays a list."""
    import tomllib

    path = Path(__file__).parent / f"{lang}.toml"
    flat: dict[str, Any] = {}

    def walk(table: dict[str, Any], prefix: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                flat[f"{prefix}{key}"] = value

    walk(tomllib.loads(path.read_text(encoding="utf-8")), "")
    return flat


def tell(key: str, lang: str, **values: Any) -> str:
    """One text, filled in."""
    return fill(str(content(lang)[key]), values).rstrip("\n")


def has(key: str, lang: str) -> bool:
    """Whether there is such a text."""
    return key in content(lang)


def hints(key: str, lang: str) -> list[str]:
    """The graded hints of a task, the weakest first."""
    return [str(hint) for hint in content(lang).get(key, ())]


def flowed(text: str) -> str:
    """A text at 80 columns: a paragraph is wrapped, a line that begins with a blank or | is left alone."""
    from klinic.render._layout import wrap

    lines: list[str] = []
    for raw in text.splitlines():
        if not raw.strip() or raw[0] in " |":
            lines.append(raw)
        else:
            hang = "  " if raw.startswith("- ") else ""
            lines.append(wrap(raw, "", hang))
    return "\n".join(lines)
