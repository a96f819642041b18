"""Curves as lines in a box, for pages that draw a few of them without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

from klinic.text import figure

WIDE, SMALL = (420.0, 150.0), (280.0, 120.0)  # width and height
LEFT, RIGHT, TOP, BOTTOM = 46.0, 8.0, 8.0, 20.0
BINS = 200  # of the lowest and the highest value each, so that no spike is lost
TICKS = 4


@dataclass(frozen=True, slots=True)
class Line:
    """One curve. label: what the legend calls it."""

    label: str
    steps: Sequence[int]
    values: Sequence[float]


def plot(
    lines: Sequence[Line],
    shaded: tuple[float, float] | None = None,
    at: float | None = None,
    least: float = 0.0,
    size: tuple[float, float] = WIDE,
) -> dict[str, Any] | None:
    """What the template draws: polylines, ticks, a shaded interval of steps and a step marked; None without points.

    least: the span of values that the height stands for at least, so that a flat line is drawn as one.
    """
    width, height = size
    points = [
        [(s, v) for s, v in zip(line.steps, line.values, strict=True) if isfinite(v)]
        for line in lines
    ]
    every = [p for one in points for p in one]
    if not every:
        return None
    first, last = min(p[0] for p in every), max(p[0] for p in every)
    low, high = min(p[1] for p in every), max(p[1] for p in every)
    if high - low < max(least, 1e-12):
        middle, half = (low + high) / 2, max(least, abs(low) * 0.1, 1e-6) / 2
        low, high = middle - half, middle + half
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])

    def x(step: float) -> float:
        return round(LEFT + (step - first) / max(1, last - first) * (width - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(height - BOTTOM - (value - low) / (high - low) * (height - TOP - BOTTOM), 1)

    return {
        "width": width,
        "height": height,
        "left": LEFT,
        "right": width - RIGHT,
        "top": TOP,
        "bottom": height - BOTTOM,
        "lines": [
            {
                "label": line.label,
                "points": [" ".join(f"{x(s)},{y(v)}" for s, v in part) for part in _parts(line)],
            }
            for line in lines
        ],
        "y": [{"at": y(tick), "text": figure(tick)} for tick in ticks],
        "x": [
            {"at": x(tick), "text": figure(int(tick))}
            for tick in _ticks(first, last)
            if first <= tick <= last
        ],
        "shaded": None if shaded is None else [x(max(first, shaded[0])), x(min(last, shaded[1]))],
        "at": None if at is None or not first <= at <= last else x(at),
    }


def _parts(line: Line) -> list[list[tuple[int, float]]]:
    """Stretches without a gap; of a long one each bin's lowest and highest value."""
    parts: list[list[tuple[int, float]]] = [[]]
    for step, value in zip(line.steps, line.values, strict=True):
        if isfinite(value):
            parts[-1].append((step, value))
        elif parts[-1]:
            parts.append([])
    total = sum(map(len, parts))
    if total > 2 * BINS:
        parts = [_thinned(part, max(1, round(BINS * len(part) / total))) for part in parts]
    return [part * 2 if len(part) == 1 else part for part in parts if part]


def _thinned(part: list[tuple[int, float]], bins: int) -> list[tuple[int, float]]:
    kept = []
    for i in range(bins):
        inside = part[i * len(part) // bins : (i + 1) * len(part) // bins]
        if inside:
            ends = {min(inside, key=lambda p: p[1]), max(inside, key=lambda p: p[1])}
            kept += sorted(ends)
    return kept


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below the lowest to above the highest."""
    span = high - low
    if span <= 0:
        return [low]
    rough = span / TICKS
    unit = 10.0 ** floor(log10(rough))
    size = next((unit * m for m in (1, 2, 2.5, 5) if unit * m >= rough), unit * 10)
    start = floor(low / size + 1e-9)
    ticks = [start * size]
    while ticks[-1] < high - 1e-9 * size:
        ticks.append((start + len(ticks)) * size)
    return [round(t, 12) for t in ticks]
