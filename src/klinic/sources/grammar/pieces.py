"""Pieces between bars or commas whose names are words: ``Step 12 | 31s | Loss -0.0012 | Grad. Norm 0.1034``.

prime-rl (both of its processes), DeepSpeed-Chat, mlx and minimind print such lines. A line whose names are single words
with a colon or an equals sign is left to :mod:`klinic.sources.grammar.pairs`.
"""

from __future__ import annotations

import re

from klinic.sources.grammar import Row

ORDER = 25
LONGEST = 4000  # characters; a longer line is text
MIN_NUMBERS = 2
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf)"
_STEP = re.compile(
    r"(?<![\w/])(?:global[ _])?(?:step|iteration|iter|update)\s*[:#]?\s*(\d+)(?:\s*/\s*\d+)?\s*:?\s*(?=$|\D)",
    re.IGNORECASE,
)
# name, then a number, a percentage or "part/whole (share%)", then perhaps a unit ("tokens/s", "GiB").
_PIECE = re.compile(
    rf"^(?P<name>[A-Za-z][\w./\-]*(?: [A-Za-z(][\w./\-)]*){{0,4}})(?P<colon>\s*:\s*|\s+)"
    rf"(?:(?P<number>{_NUMBER})(?P<percent>%?)|\d+/\d+ \((?P<share>[\d.]+)%\))(?:\s+[A-Za-z][\w/]*)?$",
    re.IGNORECASE,
)


def parse(text: str) -> Row | None:
    """The pieces that hold a number; None where the line has no step or is another grammar's."""
    if len(text) > LONGEST or "{" in text or "=" in text:
        return None
    mark = "|" if text.count("|") >= 2 else ","
    if text.count(mark) < 1 or (stepped := _STEP.search(text)) is None:
        return None
    values: dict[str, float] = {}
    wordy = False
    for piece in (text[: stepped.start()] + text[stepped.end() :]).split(mark):
        found = _PIECE.match(piece.strip())
        if found is None or found["name"].lower() in ("epoch", "ppo epoch", "ppo_ep"):
            continue
        wordy = wordy or " " in found["name"] or ":" not in found["colon"]
        if found["share"] is not None:
            values.setdefault(found["name"], float(found["share"]) / 100)
        else:
            value = float(found["number"])
            values.setdefault(found["name"], value / 100 if found["percent"] else value)
    if not wordy or len(values) < MIN_NUMBERS:
        return None
    return Row(int(stepped.group(1)), values, {})
