"""Which column of a dump is what: by the names of ``names.toml``, by the user's own before them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from klinic.errors import BadUsage, did_you_mean


@cache
def vocabulary() -> dict[str, dict[str, Any]]:
    """The tables of names.toml."""
    return tomllib.loads((files("klinic.rollouts") / "names.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Columns:
    """at: what a column is -> its name, dotted where ``deep`` has it. halves: of a completion that stands in two columns."""

    at: dict[str, str]
    parts: tuple[str, ...] = ()
    halves: tuple[str, ...] = ()
    deep: frozenset[str] = field(default_factory=frozenset)

    def needed(self) -> list[str]:
        """The top-level names that hold something we read, each once."""
        names = [*self.at.values(), *self.parts, *self.halves]
        return list(dict.fromkeys(n.split(".")[0] if n in self.deep else n for n in names))

    def samples(self) -> bool:
        """Whether such rows can be rollouts at all: something was written, in words or tokens."""
        written = {"completion", "messages", "content", "completion_tokens"}
        return bool(self.halves or written & self.at.keys())

    def judged(self) -> bool:
        """Whether a row says what the sample was paid, or which step it is of."""
        return bool({"reward", "acc", "advantage"} & self.at.keys() or self.parts)


def columns(
    rows: Iterable[Mapping[str, Any]], names: Mapping[str, str] | None = None, parts: str = "named"
) -> Columns:
    """Find the columns in a file's first rows.

    names: what -> the user's own name, dotted for a nested one. parts: "named" or "all", which of the other numbers are
    parts of the reward. Raises BadUsage for a ``names`` that klinic has no column for.
    """
    first: dict[str, Any] = {}
    for row in rows:
        for key, value in row.items():
            if isinstance(key, str) and (key not in first or _empty(first[key])):
                first[key] = value
    folded = {key.lower(): key for key in reversed(first)}
    known = vocabulary()["columns"]
    at: dict[str, str] = {}
    deep: set[str] = set()
    for what, own in (names or {}).items():
        if what not in known:
            raise BadUsage(
                f"unknown column {what!r}",
                f"{what}={own}",
                did_you_mean(what, known) or f"known: {', '.join(known)}",
            )
        if own in first:
            at[what] = own
        elif "." in own and own.split(".")[0] in first:
            at[what] = own
            deep.add(own)
    for what, aliases in known.items():
        for alias in aliases:
            named = alias if alias in first else folded.get(alias)
            if named is not None and what not in at and _fits(what, first[named]):
                at[what] = named
    halves = () if "completion" in at else _halves(first, folded)
    if halves and at.get("answer") in halves:
        del at["answer"]
        rest = [a for a in known["answer"] if a in first and a not in halves]
        if rest:
            at["answer"] = rest[0]
    taken = {*at.values(), *halves}
    return Columns(at, _parts(first, taken, parts), halves, frozenset(deep))


def _halves(first: Mapping[str, Any], folded: Mapping[str, str]) -> tuple[str, ...]:
    found = [
        next((folded[a] for a in aliases if isinstance(first.get(folded.get(a, "")), str)), None)
        for aliases in vocabulary()["halves"].values()
    ]
    return tuple(f for f in found if f) if found[0] else ()


def _parts(first: Mapping[str, Any], taken: set[str], which: str) -> tuple[str, ...]:
    told = vocabulary()["parts"]
    never, named = re.compile(told["never"], re.I), re.compile(told["named"], re.I)
    return tuple(
        key
        for key, value in first.items()
        if key not in taken
        and _number(value)
        and (named.search(key) or (which == "all" and not never.search(key)))
    )


def _number(value: Any) -> bool:
    """A number, a truth value, or a list of them (one a sample)."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(v, int | float) or v is None for v in value)
    return isinstance(value, int | float)


def _empty(value: Any) -> bool:
    return value is None or value == "" or value == []


TEXTS = {"prompt", "completion", "messages", "content"}
TOKENS = {"prompt_tokens", "completion_tokens", "mask"}


def _fits(what: str, value: Any) -> bool:
    """Whether a value can be what the column's name says: a response that is a number is a metric."""
    if what in TOKENS:
        return isinstance(value, list) and (not value or not isinstance(value[0], str))
    if what == "messages":
        return isinstance(value, list)
    if what in TEXTS:
        return isinstance(value, str | list | dict) or value is None
    if what == "reward_parts":
        return isinstance(value, dict)
    if what in {"reward", "acc"}:
        return not isinstance(value, str) or _parses(value)
    if what == "length":
        return isinstance(value, int | float | list)
    return True


def _parses(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in {"", "true", "false", "nan", "none"}
    return True
