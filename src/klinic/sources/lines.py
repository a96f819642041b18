"""Lines of a stream of bytes, whatever its length, encoding and line ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 1 << 20
LINE_LIMIT = 8 << 20  # bytes; a metric row is a few kB, a longer line is a dump of something else


def lines(stream: BinaryIO, head: bytes = b"") -> Iterator[tuple[int, str | None]]:
    """Yield (number, text); text is None where a line is over ``LINE_LIMIT`` and was passed over.

    Carriage returns end a line too, since progress bars glue rows with them; they do not raise the number.
    Bytes that are not UTF-8 become U+FFFD: one odd character must not cost the row. Memory: one chunk and one line.
    """
    number, rest, skipping = 1, head, False
    while True:
        chunk = stream.read(CHUNK)
        block = rest + chunk
        if not block:
            return
        pieces = block.split(b"\n")
        rest = pieces.pop() if chunk else b""
        if not chunk and not pieces[-1]:
            pieces.pop()  # the file ends with a line end, not with an empty line
        for piece in pieces:
            if skipping:
                skipping = False
                yield number, None
            elif len(piece) > LINE_LIMIT:
                yield number, None
            else:
                yield from ((number, part) for part in _parts(piece))
            number += 1
        if len(rest) > LINE_LIMIT:
            # A log glued together by carriage returns alone is still read piece by piece.
            head_part, found, tail = rest.rpartition(b"\r")
            if found and len(tail) <= LINE_LIMIT and not skipping:
                yield from ((number, part) for part in _parts(head_part))
                rest = tail
            else:
                skipping, rest = True, b""
        if not chunk:
            if skipping:
                yield number, None
            return


def _parts(piece: bytes) -> Iterator[str]:
    text = piece.decode("utf-8", "replace")
    if "\r" not in text:
        yield text
        return
    for part in text.split("\r"):
        if part:
            yield part
