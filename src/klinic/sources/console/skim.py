"""A long verl log: of what lies between its rows only lines that may be a row are looked at.

verl prints one line a step, all of a run's numbers on it, among gigabytes of other processes' words. Once its rows are
known, ``step:`` is searched for in the bytes and nothing else is decoded; the beginning, the end and what stands before a
restart are read whole, for there stand the configuration, the last words and the reason of the restart.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterator
from typing import BinaryIO

from klinic.sources.lines import CHUNK, Ending, lines
from klinic.sources.rows import Reading

# Our choices, for a CPU that reads 12 MB of a console a second.
LONG = 16 << 20  # bytes; a shorter log is read whole in a second or two
TAIL = 1 << 19  # bytes read whole at the end: tracebacks of all processes fit many times
BEFORE_RESTART = 1 << 18  # bytes read whole before a row whose step went back
ROWS_SEEN = 2  # rows after which the log is known for verl's
_MARK = b"step:"
_ROW = re.compile(rb"\bstep:\s?(\d+) - ")
_LAST_PAIR = re.compile(rb":(?:np\.\w+\()?[-+.\w]+\)?\s*$")  # a row that was not wrapped ends so


def long_log(stream: BinaryIO, head: bytes) -> int | None:
    """The size of the log in bytes if it is so long that it should be skimmed, None if not (or if it cannot be known)."""
    try:
        if not stream.seekable() or stream.tell() != len(head):
            return None
        size = os.fstat(stream.fileno()).st_size
    except (OSError, AttributeError):
        return None
    return size if size >= LONG else None


class Skim:
    """Reads one long log; knows which of its lines stands where."""

    def __init__(
        self, stream: BinaryIO, head: bytes, size: int, reading: Reading, ending: Ending
    ) -> None:
        self.stream, self.head, self.size, self.reading = stream, head, size, reading
        self.ending = ending
        self._counted: dict[int, int] = {}  # byte -> line ends before it

    def lines(self) -> Iterator[tuple[int, str | None]]:
        """Yield (number, text) as :func:`klinic.sources.lines.lines` does, without most lines of a long verl log.

        Any other log, and one whose rows the terminal wrapped, is yielded whole.
        """
        number, at, rows, last = 1, 0, 0, -1
        rest = self.head
        while rows < ROWS_SEEN and at < self.size - LONG // 2:
            block = rest + self.stream.read(CHUNK)
            ends = block.rfind(b"\n") + 1
            if not ends:
                break
            block, rest = block[:ends], block[ends:]
            for line in block.split(b"\n") if _MARK in block else ():
                row = _ROW.search(line) if _MARK in line else None
                if row is not None and _LAST_PAIR.search(line) is not None:
                    rows, last = rows + 1, int(row.group(1))
            yield from ((number - 1 + k, text) for k, text in lines(io.BytesIO(block)))
            number, at = number + block.count(b"\n"), at + ends
        if rows >= ROWS_SEEN:
            self._counted[at] = number - 1
            self.reading.holds["bytes passed over"] += max(0, self.size - TAIL - at)
            at = yield from self._between(at, last)
        yield from self._from(at)

    def _between(self, at: int, last: int) -> Generator[tuple[int, str | None], None, int]:
        """The rows of the middle. Returns where it stopped."""
        stop = self.size - TAIL
        begun, inside = at, False  # begun: the end of the last row; inside: of an endless line
        buffer = bytearray(CHUNK)
        while at < stop:
            self.stream.seek(at)
            got = self.stream.readinto(memoryview(buffer)[: min(CHUNK, stop - at)])  # type: ignore[attr-defined]
            if not got:
                break
            begins = 0
            if (
                inside
            ):  # of a line that is longer than a block neither the middle nor the end is looked at
                begins = buffer.find(b"\n", 0, got) + 1
                if not begins:
                    at += got
                    continue
            # The last line goes on in the next block and is read again with it. A carriage return ends one, too.
            ends = max(buffer.rfind(b"\n", begins, got), buffer.rfind(b"\r", begins, got)) + 1
            ends = ends or begins
            if not ends and at + got >= stop:
                break  # the rest is read whole, from the beginning of this line
            inside, ends = not ends, ends or got
            found = -1 if inside else buffer.find(_MARK, begins, ends)
            while found >= 0:
                opens = max(buffer.rfind(b"\n", 0, found), buffer.rfind(b"\r", 0, found)) + 1
                closes = buffer.find(b"\n", found, ends)
                closes = ends if closes < 0 else closes
                line = bytes(buffer[opens:closes])
                row = _ROW.search(line)
                if row is not None:
                    if int(row.group(1)) <= last:
                        yield from self._from(max(begun, at + opens - BEFORE_RESTART), at + opens)
                    last, begun = int(row.group(1)), at + closes
                yield Late(self, at + opens, 1), line.decode("utf-8", "replace")
                found = buffer.find(_MARK, closes, ends)
            at += ends
        self.stream.seek(at)
        while inside and (part := self.stream.readline(CHUNK)):
            at, inside = at + len(part), not part.endswith(b"\n")
        return at

    def _from(self, begins: int, ends: int | None = None) -> Iterator[tuple[int, str | None]]:
        """All lines from one byte to another."""
        self.stream.seek(begins)
        part = self.stream if ends is None else io.BytesIO(self.stream.read(ends - begins))
        for k, text in lines(part, ending=self.ending):
            yield Late(self, begins, k), text

    def line_ends_before(self, at: int) -> int:
        """How many lines end before a byte."""
        if at not in self._counted:
            here = self.stream.tell()
            known = max((byte for byte in self._counted if byte <= at), default=0)
            count, left = self._counted.get(known, 0), at - known
            self.stream.seek(known)
            while left > 0 and (block := self.stream.read(min(left, CHUNK))):
                count, left = count + block.count(b"\n"), left - len(block)
            self.stream.seek(here)
            self._counted[at] = count
        return self._counted[at]


class Late(int):
    """The number of a line, counted only where somebody reads it: a gigabyte is not counted for nothing."""

    skim: Skim
    at: int

    def __new__(cls, skim: Skim, at: int, k: int) -> Late:
        """The k-th line from a byte; as a number it only tells lines apart."""
        made = super().__new__(cls, at + k)
        made.skim, made.at = skim, at
        return made

    def __format__(self, spec: str) -> str:
        """The number in the file."""
        return format(self.skim.line_ends_before(self.at) + int(self) - self.at, spec)
