"""The frames of an event file (TFRecord): length, its checksum, that many bytes, their checksum.

Format: tensorflow/core/lib/io/record_writer.h. A checksum is CRC-32C (Castagnoli), rotated and offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

HEADER, FOOTER = (
    12,
    4,
)  # bytes around the data: u64 length and u32 checksum before, u32 checksum after
CHUNK = 8 << 20
LENGTH_LIMIT = 1 << 30  # bytes; protocol buffers end at 2 GiB, no event comes near it
CHECKED = (
    1024  # bytes; a scalar's record has some 60, a longer one holds an image, a histogram or a text
)
POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed
MASK = 0xA282EAD8


class BrokenFrame(Exception):
    """A length whose checksum is wrong: what follows cannot be found."""


@cache
def _table() -> npt.NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1)
    return table


def checksum(data: bytes) -> int:
    """The masked CRC-32C of a few bytes."""
    table = _table().tolist()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + MASK) & 0xFFFFFFFF


def records(stream: BinaryIO, head: bytes) -> Iterator[tuple[bytes, list[int], list[int], int]]:
    """Yield (data, begins, ends, broken): the whole records in a stretch of the file, and how many were damaged.

    A record that is cut off at the end (the run was killed, or still writes) is passed over. Raises BrokenFrame, after
    everything before it was given. Memory: one stretch of 8 MiB, or one record if that is longer.
    """
    rest, lengths, missing = head, dict[bytes, int](), 0
    while True:
        chunk = stream.read(max(CHUNK, missing))
        data = rest + chunk
        size, at, missing, framed = len(data), 0, 0, True
        begins: list[int] = []
        ends: list[int] = []
        while at + HEADER <= size:
            header = data[at : at + HEADER]
            length = lengths.get(header)
            if length is None:
                length = int.from_bytes(header[:8], "little")
                if (
                    checksum(header[:8]) != int.from_bytes(header[8:], "little")
                    or length > LENGTH_LIMIT
                ):
                    framed = False
                    break
                lengths[header] = length
            end = at + HEADER + length
            if end + FOOTER > size:
                missing = end + FOOTER - size
                break
            begins.append(at + HEADER)
            ends.append(end)
            at = end + FOOTER
        whole = _whole(data, begins, ends)
        yield (
            data,
            [begin for begin, good in zip(begins, whole, strict=True) if good],
            [end for end, good in zip(ends, whole, strict=True) if good],
            len(whole) - sum(whole),
        )
        if not framed:
            raise BrokenFrame
        if not chunk:
            return
        rest = data[at:]


def _whole(data: bytes, begins: list[int], ends: list[int]) -> list[bool]:
    """Whether each record's checksum is right; those of over ``CHECKED`` bytes are taken as they are.

    All records are summed side by side, a byte of each at a time, the longest first: pure Python would need a second
    for every 3 MB.
    """
    if not begins:
        return []
    table, buffer = _table(), np.frombuffer(data, dtype=np.uint8)
    begin, end = np.array(begins), np.array(ends)
    length = end - begin
    order = np.argsort(-length, kind="stable")
    order = order[np.searchsorted(-length[order], -CHECKED) :]
    start, sizes = begin[order], length[order]
    shortest_last = -sizes
    crc = np.full(len(order), 0xFFFFFFFF, dtype=np.uint32)
    for j in range(int(sizes[0]) if len(sizes) else 0):
        k = int(np.searchsorted(shortest_last, -j))  # those with more than j bytes
        part = crc[:k]
        crc[:k] = table[(part ^ buffer[start[:k] + j]) & 255] ^ (part >> 8)
    crc ^= np.uint32(0xFFFFFFFF)
    masked = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(MASK)
    stop = end[order]
    stored = np.zeros(len(order), dtype=np.uint32)
    for j in range(FOOTER):
        stored |= buffer[stop + j].astype(np.uint32) << np.uint32(8 * j)
    whole = np.ones(len(begins), dtype=bool)
    whole[order] = masked == stored
    return whole.tolist()
