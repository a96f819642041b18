"""One output format per file, found by name; each takes diagnoses and computes nothing.

A renderer is a module with ``render(diagnoses, lang, **options) -> str``.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from klinic.errors import BadUsage, did_you_mean

NO_FORMATS = ("png", "report", "sparkline")  # a picture, and parts of other formats


def formats() -> list[str]:
    """Names of all text formats."""
    return [
        m.name.removeprefix("as_")
        for m in pkgutil.iter_modules(__path__)
        if not m.name.startswith("_") and m.name not in NO_FORMATS
    ]


def renderer(name: str) -> ModuleType:
    """The renderer of a format. Raises BadUsage for an unknown one."""
    known = formats()
    if name not in known:
        raise BadUsage(
            f"unknown format {name!r}",
            "--format",
            did_you_mean(name, known) or f"known: {', '.join(known)}",
        )
    return importlib.import_module(f"{__name__}.{'as_json' if name == 'json' else name}")
