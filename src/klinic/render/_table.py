"""Many runs: a line each, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from klinic.diagnosis import STATUSES, Diagnosis
from klinic.render._layout import WIDTH, columns, pad
from klinic.render.sparkline import sparkline
from klinic.text import say
from klinic.vitals import players

HEADS = ("status", "failure", "since", "steps", "name")
SPARK = 12  # columns of the reward's curve, where the line has room for it


def names(diagnoses: Sequence[Diagnosis]) -> list[str]:
    """The runs' names; of those with the same name the end of the path that tells them apart."""
    often = Counter(answer.run.name for answer in diagnoses)
    paths = {a.run.path: Path(a.run.path).parts for a in diagnoses if often[a.run.name] > 1}
    depth = 1
    while depth < max(map(len, paths.values()), default=0) and len(
        {parts[-depth:] for parts in paths.values()}
    ) < len(paths):
        depth += 1
    return [
        "/".join(paths[a.run.path][-depth:]) if a.run.path in paths else a.run.name
        for a in diagnoses
    ]


def cells(diagnoses: Sequence[Diagnosis], lang: str) -> list[list[str]]:
    """A heading, then status, failure, onset, logged steps and name of each run."""
    rows = [[say(f"table.{head}", lang) for head in HEADS]]
    for answer, name in zip(diagnoses, names(diagnoses), strict=True):
        main = answer.main
        onset = main.onset if main else None
        rows.append(
            [
                say(f"status.{answer.status}", lang),
                main.failure if main else "",
                str(onset.step) if onset else "",
                str(answer.run.logged),
                name,
            ]
        )
    return rows


def totals(diagnoses: Sequence[Diagnosis], lang: str) -> str:
    """``14 runs: 3 failing, 11 healthy``."""
    often = Counter(answer.status for answer in diagnoses)
    parts = [f"{often[s]} {say(f'status.{s}', lang)}" for s in STATUSES if often[s]]
    return say("table.runs", lang, n=len(diagnoses), list=", ".join(parts))


def table(diagnoses: Sequence[Diagnosis], lang: str) -> list[str]:
    """Lines for a terminal: the reward's curve last, where it fits into 80 columns."""
    rows = cells(diagnoses, lang)
    widths = [max(columns(row[i]) for row in rows) for i in range(len(HEADS))]
    room = WIDTH - sum(widths) - 2 * len(HEADS) >= SPARK
    lines = []
    for i, row in enumerate(rows):
        line = "  ".join(
            " " * (width - columns(cell)) + cell if head in ("since", "steps") else pad(cell, width)
            for head, cell, width in zip(HEADS, row, widths, strict=True)
        )
        if room and i:
            line += "  " + _spark(diagnoses[i - 1])
        lines.append(line.rstrip())
    return lines


def _spark(answer: Diagnosis) -> str:
    curves = answer.run.curves
    played = [name for role in ("reward", "acc") for name in players(role, curves)]
    return sparkline(curves[played[0]].values.tolist(), SPARK) if played else ""
