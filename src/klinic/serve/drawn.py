"""The ``curves`` blocks of the failures' pages as small pictures, without their noise."""

from __future__ import annotations

import re
from typing import Any

from klinic.render import _words as words
from klinic.serve.plots import SMALL, Line, plot
from klinic.vitals import ROLES

NUMBER = r"[-+.\deE]+"
CURVE = re.compile(
    rf"^(?P<name>[\w/]+)\s+(?P<a>{NUMBER})(?:\s*->\s*(?P<b>{NUMBER}))?"
    r"(?:,?\s*(?P<how>flat\s+from|from)\s+(?P<start>\d+)(?:\s+to\s+(?P<stop>\d+))?)?"
    rf"(?:,\s*(?P<peak>{NUMBER})\s+at\s+(?P<first>\d+)(?:\s+to\s+(?P<last>\d+))?)?"
)
STEPS = re.compile(r"^step\s+(\d+)\s*\.\.\s*(\d+)")


def drawn(text: str, lang: str) -> list[dict[str, Any]]:
    """One picture a curve: ``title`` and ``plot``; a line that is no curve is left out."""
    first, last, made = 0, 200, []
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        if found := STEPS.match(line):
            first, last = int(found[1]), int(found[2])
        elif line.startswith(("config ", "expect", "restart ")):
            continue
        elif found := CURVE.match(line):
            role = found["name"]
            picture = plot(
                [_line(found, first, last)],
                least=0.1 if role == "ratio_mean" else 0.0,
                size=SMALL,
            )
            title = words.metric_title(role, lang) if role in ROLES else role
            if picture is not None:
                made.append({"title": title, "plot": picture})
    return made


def _line(found: re.Match[str], first: int, last: int) -> Line:
    """Straight from level to level."""
    a = float(found["a"])
    b = float(found["b"]) if found["b"] else a
    start, stop = first, last
    if found["start"]:
        if found["how"].startswith("flat"):
            stop = int(found["start"])
        else:
            start, stop = int(found["start"]), int(found["stop"] or last)
    steps = list(range(first, last + 1))
    values = [
        a if s <= start else b if s >= stop else a + (b - a) * (s - start) / (stop - start)
        for s in steps
    ]
    if found["peak"]:
        begin = int(found["first"])
        end = int(found["last"] or begin)
        values = [
            float(found["peak"]) if begin <= s <= end else v
            for s, v in zip(steps, values, strict=True)
        ]
    return Line(found["name"], steps, values)
