"""A curve in one line of block characters."""

from __future__ import annotations

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 40) -> str:
    """Block characters from the lowest to the highest value, at most ``width``; a bin's mean each, a gap for NaN."""
    if not values:
        return ""
    count = min(width, len(values))
    bins = [values[i * len(values) // count : (i + 1) * len(values) // count] for i in range(count)]
    means = []
    for part in bins:
        finite = [v for v in part if v == v and abs(v) != float("inf")]
        means.append(sum(finite) / len(finite) if finite else None)
    shown = [m for m in means if m is not None]
    if not shown:
        return " " * count
    low, span = min(shown), max(shown) - min(shown)
    return "".join(
        " " if m is None else BARS[int((m - low) / span * (len(BARS) - 1) + 0.5) if span else 0]
        for m in means
    )
