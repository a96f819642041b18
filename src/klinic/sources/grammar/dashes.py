"""verl's step line: ``step:3 - actor/entropy:0.12 - critic/score/mean:np.float64(0.4)``."""

from __future__ import annotations

import re

from klinic.sources.grammar import Row
from klinic.sources.rows import number

ORDER = 10
_START = re.compile(r"\bstep:\s?(\d+) - ")
_NUMPY = re.compile(r"^np\.\w+\((.*)\)$")


def parse(text: str) -> Row | None:
    """The numbers of one step; a numpy repr is the number inside it."""
    start = _START.search(text)
    if start is None:
        return None
    values: dict[str, float] = {}
    for piece in text[start.end() :].split(" - "):
        key, _, raw = piece.rpartition(":")
        try:
            value = float(raw)
        except ValueError:
            found = number(_NUMPY.sub(r"\1", raw.strip()))
            if found is None:
                continue
            value = found
        if key := key.strip():
            values[key] = value
    return Row(int(start.group(1)), values, {}) if values else None
