"""One JSON object a line: flat rows, ``{"step": 1, "data": {...}}`` rows, and rows with nested parts."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import msgspec

from klinic.sources.lines import lines
from klinic.sources.rows import Reading, numbers, step_of

ORDER = 20
# A row with one of these holds a sample, not a step's metrics.
SAMPLE_KEYS = frozenset(
    {"prompt", "completion", "response", "output", "input", "question", "messages", "trajectory"}
)
# A row with this key says what the names of a hand-written loop mean (klinic.Recorder writes it).
DEFINITIONS = "definitions"
_decode = msgspec.json.Decoder().decode


def sniff(name: str, head: str) -> bool:
    """Every line in sight is an object of its own."""
    first = head.lstrip().split("\n", 2)
    if first[0].lstrip()[:1] != "{" or first[0].lstrip()[1:].lstrip()[:1] not in ('"', "}"):
        return False
    if len(first) > 1 and first[1].strip() and not first[1].lstrip().startswith("{"):
        return first[0].rstrip().endswith("}")
    return first[0].rstrip().endswith("}") or len(first) == 1


def loads(text: str) -> Any:
    """JSON, where NaN and Infinity are allowed as Python writes them."""
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return json.loads(text)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` line by line; a broken line (the last one of a killed run) is counted and passed over."""
    counted = 0
    for number, text in lines(stream, head):
        if text is None:
            reading.holds["overlong lines"] += 1
            continue
        text = text.strip()
        if not text:
            continue
        reading.holds["lines"] += 1
        if text[0] != "{":
            reading.holds["lines that are no JSON"] += 1
            continue
        try:
            row = loads(text)
        except (ValueError, RecursionError):
            reading.holds["broken lines"] += 1
            continue
        if not isinstance(row, dict):
            continue
        counted = add_row(row, counted, f"{reading.at}:{number}", reading)


def add_row(row: dict[str, Any], counted: int, at: str, reading: Reading) -> int:
    """Add one decoded row; returns how many rows without a step were seen so far."""
    if DEFINITIONS in row and isinstance(row[DEFINITIONS], dict):
        for name, told in row[DEFINITIONS].items():
            if isinstance(told, dict) and isinstance(told.get("definition"), str):
                reading.defined[name] = (told["definition"], str(told.get("unit", "1")))
        return counted
    step = step_of(row)
    inner = row.get("data", row.get("metrics"))
    if isinstance(inner, dict):
        row = inner
        step = step_of(row) if step is None else step
    if SAMPLE_KEYS & row.keys() and any(
        isinstance(row[key], str | list) for key in SAMPLE_KEYS & row.keys()
    ):
        reading.rollouts = True
        reading.holds["samples"] += 1
        return counted
    values = numbers(row, reading.vocabulary.lists)
    for key in ("step", "global_step", "_step", "_timestamp", "timestamp", "t", "time"):
        values.pop(key, None)
    if not values:
        return counted
    if step is None:
        counted += 1
        step = counted
        reading.numbered = "counted"
    reading.add(step, values)
    return counted
