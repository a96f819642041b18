"""Lines of a stream of bytes, whatever its length, encoding and line ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 1 << 20
LINE_LIMIT = 8 << 20  # bytes; a metric row is a few kB, a longer line is a dump of something else


class Ending:
    """Whether the last line of a log ends: where it does not, its last number may be a part of one."""

    ended = True


def lines(
    stream: BinaryIO, head: bytes = b"", ending: Ending | None = None
) -> Iterator[tuple[int, str | None]]:
    """Yield (number, text); text is None where a line is over ``LINE_LIMIT`` and was passed over. ending: is told.

    Carriage returns end a line too, since progress bars glue rows with them; they do not raise the number.
    Bytes that are not UTF-8 become U+FFFD: one odd character must not cost the row. Memory: one chunk and one line.
    """
    number, rest, skipping = 1, head, False
    while True:
        chunk = stream.read(CHUNK)
        block = rest + chunk
        if not block:
            if skipping:
                yield number, None
            return
        ends = block.rfind(b"\n") + 1 if chunk else len(block)
        rest = block[ends:]
        if not chunk and ending is not None:
            ending.ended = block.endswith((b"\n", b"\r"))
        if ends:
            # Decoded together: a call a line costs more than the decoding.
            pieces = block[:ends].decode("utf-8", "replace").split("\n")
            if not pieces[-1]:
                pieces.pop()  # it ends with a line end, not with an empty line
            glued = b"\r" in block
            for piece in pieces:
                if skipping or len(piece) > LINE_LIMIT:
                    skipping = False
                    yield number, None
                elif glued and "\r" in piece:
                    yield from ((number, part) for part in piece.split("\r") if part)
                else:
                    yield number, piece
                number += 1
        if len(rest) > LINE_LIMIT:
            # A log glued together by carriage returns alone is still read piece by piece.
            head_part, found, tail = rest.rpartition(b"\r")
            if found and len(tail) <= LINE_LIMIT and not skipping:
                glued_text = head_part.decode("utf-8", "replace")
                yield from ((number, part) for part in glued_text.split("\r") if part)
                rest = tail
            else:
                skipping, rest = True, b""
