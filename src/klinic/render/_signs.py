"""The eight curves in a terminal: a line each, or some rows each, over the same steps from left to right."""

from __future__ import annotations

import numpy as np

from klinic.diagnosis import Diagnosis
from klinic.median import median
from klinic.render._layout import WIDTH, columns, pad, wrap
from klinic.render._vitals import absent, player
from klinic.render.sparkline import blocks, least_of
from klinic.run import Curve, Run
from klinic.text import figure, say
from klinic.vitals import ROLES, VITALS

LINE = 44  # columns of a curve in one line
LARGE, ROWS = 66, 5  # columns and rows of a curve that has a picture of its own

Levels = list[float | None]


def lines(answer: Diagnosis, lang: str) -> list[str]:
    """One line a curve: name, first level, blocks, last level; below them where it began, and what is not logged."""
    run = answer.run
    drawn: list[tuple[str, str, str, str]] = []
    missing = []
    for role in VITALS:
        shown, name = player(run, role)
        levels = levels_of(run, run.curves[name], LINE) if name else []
        known = [level for level in levels if level is not None]
        if not known:
            missing.append(role)
            continue
        least = least_of(shown, known)
        drawn.append((shown, figure(known[0]), blocks(levels, least=least)[0], figure(known[-1])))
    if not drawn:
        return []
    names = max(columns(row[0]) for row in drawn)
    firsts = max(columns(row[1]) for row in drawn)
    said = [
        f"  {pad(name, names)}  {first.rjust(firsts)} {pad(line, LINE)} {last}".rstrip()
        for name, first, line, last in drawn
    ]
    said += _marker(answer, names + firsts + 5, LINE, lang)
    if missing:
        said.append(wrap(say("plot.missing", lang, list=", ".join(missing)), "  ", "    "))
    return said


def pictures(answer: Diagnosis, lang: str) -> list[str]:
    """Some rows a curve, its highest level above and its lowest below at the left, the steps at the foot."""
    run = answer.run
    said: list[str] = []
    for role in VITALS:
        shown, name = player(run, role)
        title = ROLES[shown].says("title", lang)
        head = shown if title == shown else f"{shown}  {title}"
        if name is None:
            said += [head, *(wrap(text, "  ", "  ") for text in absent(answer, role, lang)), ""]
            continue
        levels = levels_of(run, run.curves[name], LARGE)
        known = [level for level in levels if level is not None]
        if not known:
            said += [head, f"  {say('plot.nothing', lang)}", ""]
            continue
        rows = blocks(levels, ROWS, least_of(shown, known))
        edge = [figure(max(known)), *[""] * (ROWS - 2), figure(min(known))]
        room = WIDTH - LARGE - 2
        said.append(f"{head}  ({run.curves[name].metric.source_key})")
        said += [f"{at.rjust(room)} {row}".rstrip() for at, row in zip(edge, rows, strict=True)]
        said += _marker(answer, room + 1, LARGE, lang)
        said.append("")
    ends = [str(run.first), str(run.last)]
    foot = " " * (WIDTH - LARGE - 1) + ends[0] + ends[1].rjust(LARGE - len(ends[0]))
    return [*said, foot]


def levels_of(run: Run, curve: Curve, width: int) -> Levels:
    """The median of each of ``width`` equal stretches of the run; a stretch without a row has the level before it.

    None before the first row, after the last one, and where nothing is finite.
    """
    spread = max(1, run.last - run.first + 1)
    cells = np.clip((curve.steps - run.first) * width // spread, 0, width - 1)
    fine = np.isfinite(curve.values)
    order = np.lexsort((curve.values[fine], cells[fine]))
    values = curve.values[fine][order]
    found, first, count = np.unique(cells[fine][order], return_index=True, return_counts=True)
    medians = (values[first + (count - 1) // 2] + values[first + count // 2]) / 2
    known = dict(zip(found.tolist(), medians.tolist(), strict=True))
    levels: Levels = [known.get(cell) for cell in range(width)]
    filled = set(cells.tolist())
    for cell in range(min(filled), _end(curve, max(filled), width, spread)):
        if cell not in filled:
            levels[cell] = levels[cell - 1]
    return levels


def _end(curve: Curve, last: int, width: int, spread: int) -> int:
    """Up to where the row in the last cell speaks: as far as rows usually lie apart."""
    apart = median(np.diff(curve.steps)) if len(curve.steps) > 1 else spread
    return min(width, last + max(1, round(apart * width / spread)))


def _marker(answer: Diagnosis, indent: int, width: int, lang: str) -> list[str]:
    onset = answer.main.onset if answer.main else None
    if onset is None:
        return []
    run = answer.run
    at = (onset.step - run.first) * width // max(1, run.last - run.first + 1)
    text = say("plot.onset", lang, step=onset.step)
    at = min(max(at, 0), width - 1)
    before = f"{text} ^"
    if at + 2 + columns(text) > width and at >= columns(before) - 1:
        return [" " * (indent + at - columns(before) + 1) + before]
    return [" " * (indent + at) + f"^ {text}"]
