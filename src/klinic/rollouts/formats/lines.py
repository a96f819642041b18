"""JSON, one row a line: most trainers' dumps.

Only the columns that are read are decoded: rows with a log-probability a token are mostly what is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import msgspec

from klinic.rollouts.columns import Columns, columns
from klinic.rollouts.dump import BATCH_BYTES, BATCH_ROWS, Batch, Dump
from klinic.rollouts.places import parts_of
from klinic.rollouts.rows import Rows, rows_of

ORDER = 50
BLOCK = 4 * 2**20
LONGEST = 64 * 2**20  # bytes of a line; a longer one is passed over (our choice)
HEAD_ROWS = 20
_any = msgspec.json.Decoder().decode
Decode = Callable[[bytes], Mapping[str, Any]]


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether the first rows are objects that hold samples."""
    if head.lstrip()[:1] != b"{" or not name.lower().endswith((".jsonl", ".json", ".ndjson")):
        return False
    rows = first_rows(head)
    found = columns(rows, names)
    return found.samples() and (found.judged() or bool({"prompt", "step"} <= found.at.keys()))


def first_rows(head: bytes) -> list[dict[str, Any]]:
    """The rows that stand whole in a file's first bytes."""
    rows = []
    for line in head.split(b"\n")[:HEAD_ROWS]:
        row = decoded(line)
        if isinstance(row, dict):
            rows.append(row)
    return rows


def decoded(line: bytes) -> Any:
    """One line, with NaN and Infinity as Python writes them; None where it is no JSON."""
    try:
        return _any(line)
    except (msgspec.DecodeError, RecursionError):
        try:
            return json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches from byte ``since`` on; a last line without its end is left for the next time unless it is whole JSON."""
    reader = Reader(dump, names)
    with open(dump.path, "rb") as stream:
        yield from batches(stream, since, reader.take)


class Reader:
    """Turns lines into rollouts, having learnt the columns from the first that it saw, and again where later ones differ."""

    def __init__(self, dump: Dump, names: Mapping[str, str]) -> None:
        self.dump, self.names = dump, names
        self.seen: list[dict[str, Any]] = []
        self.decode: Decode | None = None
        self.rows: Rows | None = None

    def take(self, lines: list[bytes]) -> Batch:
        """The rollouts of some whole lines."""
        batch = Batch()
        if self.decode is None:
            self._learn(lines[:HEAD_ROWS])
        for line in lines:
            if not line.strip():
                continue
            made = self._one(line)
            if made:
                batch.rows += made
            else:
                batch.skipped += 1
        return batch

    def _one(self, line: bytes) -> list[Any]:
        assert self.decode is not None and self.rows is not None
        try:
            made = self.rows(self.decode(line))
        except (msgspec.DecodeError, RecursionError):
            row = decoded(line)
            made = self.rows(row) if isinstance(row, dict) else []
        if not made and self._learn([line]):
            made = self.rows(self.decode(line))
        return made

    def _learn(self, lines: list[bytes]) -> bool:
        """Find the columns again with some more rows; whether one of them can be read."""
        fresh = [row for line in lines if isinstance(row := decoded(line), dict)]
        if self.decode is not None and not columns(fresh, self.names).samples():
            return False
        if len(self.seen) < 10 * HEAD_ROWS:
            self.seen += fresh
        found = columns(self.seen, self.names, parts_of(self.dump.trainer))
        self.decode, self.rows = decoder(found), rows_of(self.dump, found)
        return bool(fresh)


def decoder(found: Columns) -> Decode:
    """A function from a line to its columns that are read; the others are passed over without being built."""
    needed = found.needed()
    fields = [(f"c{i}", Any, None) for i in range(len(needed))]
    shape = msgspec.defstruct(
        "Row", fields, rename={f"c{i}": name for i, name in enumerate(needed)}, gc=False
    )
    decode = msgspec.json.Decoder(shape).decode
    astuple = msgspec.structs.astuple

    def row(line: bytes) -> dict[str, Any]:
        return dict(zip(needed, astuple(decode(line)), strict=True))

    return row


def batches(stream: BinaryIO, since: int, take: Callable[[list[bytes]], Batch]) -> Iterator[Batch]:
    """Whole lines from a byte on, handed to ``take`` some thousands at a time."""
    stream.seek(since)
    at, rest, skipping = since, b"", False
    while block := stream.read(BLOCK):
        end = block.rfind(b"\n") + 1
        if not end:
            rest += block
            if len(rest) > LONGEST:
                at, rest, skipping = at + len(rest), b"", True
            continue
        whole, rest = rest + block[:end], block[end:]
        if skipping:
            cut = whole.index(b"\n") + 1
            at, whole, skipping = at + cut, whole[cut:], False
            yield Batch([], at, 1)
        lines = whole.split(b"\n")[:-1]
        for i in range(0, len(lines), BATCH_ROWS):
            some = lines[i : i + BATCH_ROWS]
            batch = take(some)
            at += sum(map(len, some)) + len(some)
            batch.until = at
            yield batch
    if rest and not skipping and decoded(rest) is not None:
        batch = take([rest])
        batch.until = at + len(rest)
        yield batch


assert BLOCK <= BATCH_BYTES
