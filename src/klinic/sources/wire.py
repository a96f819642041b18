"""The wire format of protocol buffers, read by hand: fields and where their bytes lie."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, begin, end) of every field of the message in ``data[at:end]``.

    For a VARINT ``begin`` is the value itself. Raises ValueError where the bytes are no message.
    """
    try:
        while at < end:
            # Most numbers are one byte, and a call of varint for each would take half of the time.
            key = data[at]
            key, at = (key, at + 1) if key < 128 else varint(data, at)
            kind = key & 7
            if kind == BYTES:
                length = data[at]
                length, begin = (length, at + 1) if length < 128 else varint(data, at)
                at = begin + length
            elif kind == VARINT:
                begin = data[at]
                begin, at = (begin, at + 1) if begin < 128 else varint(data, at)
            elif kind == FIXED64:
                begin, at = at, at + 8
            elif kind == FIXED32:
                begin, at = at, at + 4
            else:
                raise ValueError("a wire type that is no longer in use")
            if at > end:
                raise ValueError("a field reaches beyond its message")
            yield key >> 3, kind, begin, at
    except IndexError:
        raise ValueError("the bytes end within a number") from None


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, where the next byte lies). Raises ValueError where it does not end."""
    value = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, at
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
    except IndexError:
        raise ValueError("the bytes end within a number") from None


def signed(value: int) -> int:
    """An int64 as two's complement: a negative one is written as a huge unsigned one."""
    return value - (1 << 64) if value >> 63 & 1 else value


def text(data: bytes, begin: int, end: int) -> str:
    """The UTF-8 text of a field; bytes that are none become U+FFFD."""
    return data[begin:end].decode("utf-8", "replace")
