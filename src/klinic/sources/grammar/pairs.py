"""Pairs of a name and a number on a line that carries a step: the seeds' line, and most hand-written loops.

``[ 12] reward=0.41 acc=21.1% len=84``, ``step 12 | loss: 0.02 | kl: 0.001``, ``Step 3 | loss:0.1 reward:0.2``.
"""

from __future__ import annotations

import re

from klinic.sources.grammar import Row
from klinic.sources.rows import STEP_KEYS

ORDER = 30
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_PAIR = re.compile(
    rf"([A-Za-z_][\w/@.\-]*)(?:\s*[=:|]\s*|\s*[=:]\s*)({_NUMBER})(%?)(?![\w.:/])", re.IGNORECASE
)
_BRACKET = re.compile(r"^\s*\[\s*(\d+)(?:\s*/\s*\d+)?\s*\]")
_WORD = re.compile(
    r"(?<![\w/])(?<!total )(?<!training )(?<!max )(?<!num )(?:global[ _])?(?:step|iteration|iter|update)\s*[=:#|]?\s*\[?\s*(\d+)\b(?!\.\d)",
    re.IGNORECASE,
)
_STEP_KEYS = frozenset(STEP_KEYS)


def parse(text: str) -> Row | None:
    """All pairs of the line; None where it carries no step or no pair."""
    if len(text) > 20_000 or not any(mark in text for mark in "=:|"):
        return None
    marked = _BRACKET.match(text) or _WORD.search(text)
    if marked is None:
        return None
    values: dict[str, float] = {}
    for key, raw, percent in _PAIR.findall(text):
        if key.lower() in _STEP_KEYS or key in values:
            continue
        value = float(raw)
        values[key] = value / 100 if percent else value
    return Row(int(marked.group(1)), values, {}) if values else None
