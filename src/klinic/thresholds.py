"""Thresholds of the failures, and cards with others: what a user may set per failure in klinic.toml.

A threshold is a number that a failure's file names in capitals. A card under other thresholds is a second copy of its
file in which those names hold the other numbers; the first copy stays as it is.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType

from klinic.errors import BadUsage, did_you_mean
from klinic.failures import Card, cards

Chosen = Mapping[str, Mapping[str, float]]
CHOSEN: ContextVar[Chosen] = ContextVar("thresholds", default=MappingProxyType({}))


def thresholds(slug: str) -> dict[str, float]:
    """A failure's thresholds by lower-case name, in the order of its file."""
    module = sys.modules[_known(slug).judge.__module__]
    found = {}
    for line in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and isinstance(name := line.targets[0], ast.Name):
            value = getattr(module, name.id, None)
            if name.id.isupper() and isinstance(value, int | float) and not isinstance(value, bool):
                found[name.id.lower()] = value
    return found


def chosen_cards(chosen: Chosen | None = None) -> dict[str, Card]:
    """Every failure by slug, those of ``chosen`` (default: what the command line set) under its thresholds.

    Raises BadUsage for a slug or a threshold that does not exist.
    """
    wanted = CHOSEN.get() if chosen is None else chosen
    return {**cards(), **{slug: _with(slug, changes) for slug, changes in wanted.items()}}


def _with(slug: str, changes: Mapping[str, float]) -> Card:
    card = _known(slug)
    own = thresholds(slug)
    for name in changes:
        if name not in own:
            raise BadUsage(
                f"{slug} has no threshold {name!r}",
                "thresholds",
                did_you_mean(name, own) or f"it has: {', '.join(own) or 'none'}",
            )
    source = sys.modules[card.judge.__module__]
    spec = importlib.util.spec_from_file_location(f"{source.__name__}__chosen", source.__file__)
    assert spec is not None and spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    for name, value in changes.items():
        setattr(copy, name.upper(), value)
    found: Card = getattr(copy, card.stem)
    return found


def _known(slug: str) -> Card:
    known = cards()
    if slug not in known:
        raise BadUsage(
            f"unknown failure {slug!r}",
            "thresholds",
            did_you_mean(slug, known) or "klinic explain lists them",
        )
    return known[slug]
