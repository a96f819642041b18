"""How one line of a console spells a row: one grammar per file, found by walking this folder.

A grammar is a module with ``ORDER`` and ``parse(text) -> Row | None``; the first that answers wins. A grammar that
needs several lines is in ``console.py`` beside this folder.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One parsed line: its own step (None where it carries none), its numbers, and its raw leaves."""

    step: int | None
    values: dict[str, float]
    leaves: Mapping[str, Any]


@cache
def grammars() -> tuple[ModuleType, ...]:
    """Every grammar, in the order in which they are asked."""
    found = [
        importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)
    ]
    return tuple(sorted(found, key=lambda module: module.ORDER))
