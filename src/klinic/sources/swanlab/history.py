"""What one .swanlab file says: the scalars that were logged, the run's name and its console.

Frames as wandb's (:mod:`klinic.sources.blocks`). Messages: swanlab/proto of SwanLab 0.10. Record: start 10 {name 4, started
12}, scalar 13 {key 1, step 2, value 5 {number 1}}, log 16 {line 1}. A number of 0 is not written. The configuration stands
in files/config.yaml beside. Media (14) is not read. Before 0.8 a record was a line of JSON (version 1, swanlab/proto/v0.py of
SwanLab 0.6).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from klinic.errors import UnreadableInput
from klinic.sources.blocks import FILE_HEADER, records
from klinic.sources.jsonl import loads
from klinic.sources.points import Points
from klinic.sources.rows import number as number_of
from klinic.sources.swanlab.local import complete
from klinic.sources.wire import BYTES, FIXED64, VARINT, fields, signed, text

MAGIC = b":SWL\xd6\xe1"  # ":SWL", u16 0xE1D6; then u8 version
VERSIONS = (1, 2)
START, SCALAR, LOG = 10, 13, 16
NUMBER, NUMBER_SIZE = 1 << 3 | FIXED64, 9  # the field of a double, and its bytes
CONSOLE_LIMIT = 64 << 20  # bytes of the console that are kept; what went wrong stands at its end
_double = struct.Struct("<d").unpack_from


@dataclass(slots=True)
class History:
    """scalars: as logged. started: seconds since 1970, 0 if the file does not say."""

    at: str
    scalars: Points = field(default_factory=Points)
    console: bytearray = field(default_factory=bytearray)
    name: str = ""
    started: float = 0.0
    broken: int = 0


def history(stream: BinaryIO, head: bytes, at: str) -> History:
    """Read one file, and what mode="local" wrote beside it. Raises UnreadableInput where it is none or holds no record."""
    if head[: len(MAGIC)] != MAGIC or len(head) < FILE_HEADER:
        raise UnreadableInput(
            "it is named like a SwanLab file, and does not begin like one",
            at,
            "copy the file again, or name the run's text log",
        )
    if head[6] not in VERSIONS:
        raise UnreadableInput(
            f"a SwanLab file of version {head[6]}; klinic reads versions {VERSIONS[0]} and {VERSIONS[1]}",
            at,
            "export the run as CSV from SwanLab's page, or name the run's text log",
        )
    found, count, keys = History(at), 0, dict[bytes, str]()
    for record in records(stream, head):
        if record is None:
            found.broken += 1
            continue
        count += 1
        try:
            if head[6] == 1:
                _old_record(record, found)
            else:
                _record(record, found, keys)
        except (ValueError, RecursionError, struct.error):
            found.broken += 1
    complete(found, Path(at).parent)
    if not count and not found.scalars.keys:
        raise UnreadableInput(
            "a SwanLab file with no whole record: what a killed run had not yet written is lost",
            at,
            "name the run's text log",
        )
    return found


def _record(data: bytes, found: History, keys: dict[bytes, str]) -> None:
    for number, kind, a, b in fields(data, 0, len(data)):
        if kind != BYTES or number < START:
            continue
        if number == SCALAR:
            _scalar(data, a, b, found, keys)
        elif number == LOG:
            for inner, how, c, d in fields(data, a, b):
                if inner == 1 and how == BYTES:
                    found.console += data[c:d] + b"\n"
            if len(found.console) > 2 * CONSOLE_LIMIT:
                del found.console[:-CONSOLE_LIMIT]
        elif number == START:
            for inner, how, c, d in fields(data, a, b):
                if inner == 4 and how == BYTES:
                    found.name = text(data, c, d)
                elif inner == 12 and how == BYTES:
                    found.started = float(
                        next((e for part, _, e, _ in fields(data, c, d) if part == 1), 0)
                    )


def _old_record(data: bytes, found: History) -> None:
    """A line of JSON, as SwanLab wrote it before 0.8: {"model_type", "data"}."""
    document = loads(data.decode("utf-8", "replace"))
    if not isinstance(document, dict) or not isinstance(document.get("data"), dict):
        return
    kind, held = document.get("model_type"), document["data"]
    if kind == "Scalar" and isinstance(held.get("metric"), dict):
        step, value = held.get("step"), number_of(held["metric"].get("data"))
        if isinstance(step, int) and not isinstance(step, bool) and value is not None:
            found.scalars.add(str(held.get("key", "")), step, value)
    elif kind == "Log":
        found.console += f"{held.get('message', '')}\n".encode()
    elif kind == "Experiment":
        found.name = str(held.get("name") or "")


def _scalar(data: bytes, begin: int, end: int, found: History, keys: dict[bytes, str]) -> None:
    key, step, value = b"", 0, None
    for number, kind, a, b in fields(data, begin, end):
        if number == 1 and kind == BYTES:
            key = data[a:b]
        elif number == 2 and kind == VARINT:
            step = signed(a)
        elif number == 5 and kind == BYTES:
            # A message of one field is looked at directly: a run has a million of them.
            if b == a:
                value = 0.0
            elif b - a == NUMBER_SIZE and data[a] == NUMBER:
                value = _double(data, a + 1)[0]
    if key and value is not None:
        name = keys.get(key)
        if name is None:
            name = keys[key] = key.decode("utf-8", "replace")
        found.scalars.add(name, step, value)
