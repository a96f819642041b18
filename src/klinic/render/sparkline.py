"""A curve as block characters, in one line or in some."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

BARS = "▁▂▃▄▅▆▇█"
LEAST = (
    0.2  # of its own level: a curve that moves less is drawn as the flat line it is (our choice)
)
STEADY = 0.1  # the same of a ratio, around 1, as on the picture
RATIOS = ("ratio", "ratio_mean", "ratio_geo")


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
    return blocks([b[len(b) // 2] if b else None for b in bins], least=least)[0]


def blocks(levels: Sequence[float | None], rows: int = 1, least: float = 0.0) -> list[str]:
    """Columns of blocks as lines, the uppermost first. levels: None is a gap; least: as for ``sparkline``."""
    shown = [level for level in levels if level is not None]
    if not shown:
        return [" " * len(levels)] * rows
    low, high = min(shown), max(shown)
    if high - low < least:
        low = (high + low - least) / 2
        high = low + least
    size = len(BARS)
    scale = (rows * size - 1) / (high - low) if high > low else 0.0
    heights = [0 if v is None else 1 + round((v - low) * scale) for v in levels]
    return [
        "".join(_cell(height - row * size, size) for height in heights)
        for row in reversed(range(rows))
    ]


def least_of(key: str, values: Sequence[float]) -> float:
    """How much a curve has to move to be drawn as moving. key: a vital sign's name."""
    return STEADY if key in RATIOS else LEAST * max(map(abs, values), default=0.0)


def _cell(height: int, size: int) -> str:
    return BARS[min(height, size) - 1] if height > 0 else " "
