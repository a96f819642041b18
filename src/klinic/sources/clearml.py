"""ClearML's offline session: metrics.jsonl, each line a JSON list of events (clearml/backend_interface/metrics/interface.py).

A title and a series make the key, ``loss/actor``; transformers' titles come with the series train and eval, which stand
first in every other tracker's keys. ClearML writes 0 for NaN and for infinity.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from klinic.sources.jsonl import loads
from klinic.sources.lines import lines
from klinic.sources.points import Points
from klinic.sources.rows import Reading

ORDER = 5  # before a JSON array of rows, which begins the same way
SCALAR = "training_stats_scalar"
PHASES = {"train", "eval", "test"}


def sniff(name: str, head: str) -> bool:
    """The first line is a list of events."""
    first = head.lstrip()[:4096].split("\n", 1)[0]
    return first.startswith("[{") and all(
        f'"{key}"' in first for key in ("metric", "variant", "type")
    )


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` line by line; the last one of a killed run may be cut off."""
    points = Points()
    for _, text in lines(stream, head):
        try:
            events = loads(text.strip()) if text and text.strip() else []
        except (ValueError, RecursionError):
            reading.holds["broken lines"] += 1
            continue
        for event in events if isinstance(events, list) else []:
            if isinstance(event, dict) and event.get("type") == SCALAR:
                _add(event, points)
    reading.holds["rows"] += len(points.values)
    points.fill(reading)


def _add(event: dict[str, Any], points: Points) -> None:
    step, value = event.get("iter"), event.get("value")
    if isinstance(step, bool | None) or not isinstance(step, int) or isinstance(value, bool):
        return
    if not isinstance(value, int | float):
        return
    title, series = str(event.get("metric", "")), str(event.get("variant", ""))
    if series in PHASES:
        title, series = series, title
    points.add(f"{title}/{series}" if series and series != title else title, step, float(value))
