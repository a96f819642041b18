"""A curve in one line of block characters."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 40, least: float = 0.0) -> str:
    """Block characters from the lowest to the highest level; each is the median of its share of the steps, a gap for NaN.

    least: a curve that moves less than this is drawn as the flat line it is.
    """
    if not values:
        return ""
    bins = [
        sorted(filter(isfinite, values[i * len(values) // width : (i + 1) * len(values) // width]))
        for i in range(width)
    ]
    if len(values) < width:  # a sparse curve is drawn as wide as the others
        bins = [
            [v] if isfinite(v := values[i * len(values) // width]) else [] for i in range(width)
        ]
    levels = [b[len(b) // 2] if b else None for b in bins]
    shown = [level for level in levels if level is not None]
    if not shown:
        return " " * width
    low, high = min(shown), max(shown)
    if high - low < least:
        low = (high + low - least) / 2
        high = low + least
    scale = (len(BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if v is None else BARS[round((v - low) * scale)] for v in levels)
