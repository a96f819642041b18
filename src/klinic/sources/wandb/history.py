"""What one .wandb file says: the rows that were logged, the configuration and the console.

Messages: wandb/proto/wandb_internal.proto. Record: history 2, config 5, metric 12, output_raw 13, run 17. The summary (3)
repeats the last row, stats (7) are the machine's: neither is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import msgspec

from klinic.errors import UnreadableInput
from klinic.sources.blocks import records
from klinic.sources.jsonl import loads
from klinic.sources.rows import flatten
from klinic.sources.wire import BYTES, FIXED64, VARINT, fields, signed, text

FILE_HEADER = b":W&B\xe1\xbe\x00"  # ":W&B", u16 0xBEE1, u8 version 0
HISTORY, OUTPUT, CONFIG, METRIC, OUTPUT_RAW, RUN = 2, 4, 5, 12, 13, 17
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16
_ONE_KEY = (KEY << 3 | BYTES, NESTED_KEY << 3 | BYTES)  # how an item begins
_JSON = bytes([VALUE_JSON << 3 & 127 | BYTES | 128, VALUE_JSON >> 4])  # how its VALUE_JSON does
INTEGER, NUMBER = 5, 6  # of a history item, beside its JSON
CONSOLE_LIMIT = 64 << 20  # bytes of the console that are kept; what went wrong stands at its end
MISSPELT = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}

_float = msgspec.json.Decoder(float).decode


@dataclass(slots=True)
class History:
    """rows: as logged, numbers only. axes: metrics that wandb.define_metric named as another's step.

    started: seconds since 1970, 0 if the file does not say. console: what the run printed.
    """

    at: str
    rows: list[dict[str, float]] = field(default_factory=list)
    axes: dict[str, None] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    console: bytearray = field(default_factory=bytearray)
    name: str = ""
    started: float = 0.0
    broken: int = 0


def history(stream: BinaryIO, head: bytes, at: str) -> History:
    """Read one file. Raises UnreadableInput where it is none or holds no record yet."""
    if head[: len(FILE_HEADER)] != FILE_HEADER[: len(head)] or len(head) < len(FILE_HEADER):
        raise UnreadableInput(
            "it is named like a wandb file, and does not begin like one",
            at,
            "copy the file again, or export the run's history as CSV",
        )
    found = History(at)
    count = 0
    for record in records(stream, head):
        if record is None:
            found.broken += 1
            continue
        count += 1
        try:
            _record(record, found)
        except (ValueError, struct.error):
            found.broken += 1
    if not count:
        raise UnreadableInput(
            "a wandb file with no whole record: wandb writes 32 KiB at a time, and a run killed before keeps nothing",
            at,
            "name files/output.log beside it, or the trainer's own log",
        )
    return found


def _record(data: bytes, found: History) -> None:
    for number, kind, a, b in fields(data, 0, len(data)):
        if kind != BYTES:
            continue
        if number == HISTORY:
            row = _row(data, a, b)
            if row:
                found.rows.append(row)
        elif number == CONFIG:
            _configure(data, a, b, found)
        elif number == METRIC:
            found.axes.update(
                (text(data, c, d), None)
                for inner, how, c, d in fields(data, a, b)
                if inner == 4 and how == BYTES
            )
        elif number in (OUTPUT, OUTPUT_RAW):
            for inner, how, c, d in fields(data, a, b):
                if inner == 3 and how == BYTES:
                    found.console += data[c:d]
            if len(found.console) > 2 * CONSOLE_LIMIT:
                del found.console[:-CONSOLE_LIMIT]
        elif number == RUN:
            _run(data, a, b, found)


def _row(data: bytes, begin: int, end: int) -> dict[str, float]:
    row: dict[str, float] = {}
    for number, kind, a, b in fields(data, begin, end):
        if kind != BYTES:
            continue
        if number == 2:  # HistoryStep
            for inner, _, step, _ in fields(data, a, b):
                if inner == 1:
                    row.setdefault("_step", signed(step))
        elif number == 1:
            # Nearly every item is one short key and one short value; taking it apart field by field takes twice the time.
            size = data[a + 1] if b - a > 4 else 128
            middle = a + 2 + size
            if data[a] in _ONE_KEY and data[middle : middle + 2] == _JSON and size < 128:
                if data[middle + 2] == b - middle - 3 < 128:
                    _leaf(
                        data[a + 2 : middle].decode("utf-8", "replace"), data[middle + 3 : b], row
                    )
                    continue
            key, raw, value = "", b"", None
            for inner, how, c, d in fields(data, a, b):
                if inner == NESTED_KEY:
                    part = text(data, c, d)
                    key = f"{key}/{part}" if key else part
                elif inner == KEY:
                    key = text(data, c, d)
                elif inner == VALUE_JSON:
                    raw = data[c:d]
                elif inner == INTEGER and how == VARINT:
                    value = float(signed(c))
                elif inner == NUMBER and how == FIXED64:
                    value = struct.unpack_from("<d", data, c)[0]
            if value is not None:
                row[key] = value
            elif raw:
                _leaf(key, raw, row)
    return row


def _leaf(key: str, raw: bytes, row: dict[str, float]) -> None:
    try:
        row[key] = _float(raw)
        return
    except msgspec.DecodeError:
        pass
    said = raw.decode("utf-8", "replace").strip('"')
    if said in MISSPELT:
        row[key] = MISSPELT[said]
    elif raw[:1] == b"{":
        try:
            document = loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        if "_type" in document:  # a table, an image, a histogram
            return
        for name, value in flatten(document, f"{key}/"):
            if isinstance(value, int | float) and not isinstance(value, bool):
                row[name] = float(value)


def _configure(data: bytes, begin: int, end: int, found: History) -> None:
    for number, kind, a, b in fields(data, begin, end):
        if number != 1 or kind != BYTES:
            continue
        key, raw = "", ""
        for inner, _, c, d in fields(data, a, b):
            if inner == NESTED_KEY:
                part = text(data, c, d)
                key = f"{key}.{part}" if key else part
            elif inner == KEY:
                key = text(data, c, d)
            elif inner == VALUE_JSON:
                raw = text(data, c, d)
        if not key or key.startswith("_wandb") or not raw:
            continue
        try:
            value = loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            for name, leaf in flatten(value, f"{key}/"):
                found.settings[name.replace("/", ".")] = leaf
        else:
            found.settings[key.replace("/", ".")] = value


def _run(data: bytes, begin: int, end: int, found: History) -> None:
    for number, kind, a, b in fields(data, begin, end):
        if kind != BYTES:
            continue
        if number == 4:
            _configure(data, a, b, found)
        elif number == 8:
            found.name = text(data, a, b)
        elif number == 17:
            found.started = float(
                next((c for inner, _, c, _ in fields(data, a, b) if inner == 1), 0)
            )
