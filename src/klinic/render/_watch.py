"""The watched runs as a table that is drawn again and again: worst first, what needs a person on top."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from klinic.diagnose import worst_first
from klinic.diagnosis import Diagnosis
from klinic.render._layout import WIDTH, columns, pad
from klinic.text import say, say_in

HEADS = ("status", "failure", "since", "step", "age", "run")


def view(
    runs: Iterable[Any], troubles: Sequence[str], lang: str, width: int = WIDTH, height: int = 0
) -> str:
    """runs: with ``diagnosis``, ``run`` and ``grown_at``. height: lines there are, 0 for any number."""
    by_answer = {id(w.diagnosis): w for w in runs if w.diagnosis is not None}
    answers: list[Diagnosis] = worst_first(w.diagnosis for w in by_answer.values())
    lines = list(troubles)
    if not answers:
        return "\n".join([*lines, say_in("watch", "view.nothing", lang)])
    room = max(1, height - len(lines) - 2) if height else len(answers)
    rows = [[say_in("watch", f"view.{head}", lang) for head in HEADS]]
    for answer in answers[:room]:
        watched = by_answer[id(answer)]
        main = answer.main
        rows.append(
            [
                say(f"status.{answer.status}", lang),
                main.failure if main else "",
                str(main.onset.step) if main and main.onset else "",
                str(watched.run.last),
                age(time.time() - watched.grown_at),
                watched.run.name,
            ]
        )
    widths = [max(columns(row[i]) for row in rows) for i in range(len(HEADS) - 1)]
    for row in rows:
        start = "  ".join(pad(cell, wide) for cell, wide in zip(row, widths, strict=False))
        lines.append(_cut(f"{start}  {row[-1]}", width))
    if len(answers) > room:
        lines.append(f"+ {len(answers) - room}")
    return "\n".join(lines)


def age(seconds: float) -> str:
    """``12 s``, ``5 min``, ``3 h``: whole units, rounded down."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def _cut(text: str, width: int) -> str:
    while columns(text) > width:
        text = text[:-1]
    return text
