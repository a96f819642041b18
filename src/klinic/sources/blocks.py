"""The frames of wandb's and SwanLab's files: LevelDB's log format in blocks of 32 KiB, with a header of seven bytes.

A chunk is u32 checksum, u16 length, u8 type and its data; a record is one whole chunk or a first, some middle and a last
one; fewer than seven bytes left in a block are padding. The checksum is zlib's crc32 over type and data (LevelDB's own is
CRC-32C). Format: doc/log_format.md of LevelDB, and wandb/sdk/internal/datastore.py of wandb 0.19.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

BLOCK = 1 << 15
FILE_HEADER = 7  # bytes: four letters, a number of u16, the version
CHUNK_HEADER = 7
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
TYPE_CRC = {kind: zlib.crc32(bytes([kind])) for kind in (WHOLE, FIRST, MIDDLE, LAST)}


def records(stream: BinaryIO, head: bytes) -> Iterator[bytes | None]:
    """Yield every whole record, and None for each damaged stretch; a record cut off at the end is passed over.

    ``head``: the first bytes of the file, at least its header. Memory: one block and one record.
    """
    rest, at = head, FILE_HEADER
    parts: list[bytes] = []
    while True:
        if len(rest) < BLOCK:
            rest += stream.read(BLOCK - len(rest))
        block, rest = rest[:BLOCK], rest[BLOCK:]
        if not block:
            return
        while at + CHUNK_HEADER <= len(block):
            begin = at + CHUNK_HEADER
            kind = block[at + 6]
            end = begin + int.from_bytes(block[at + 4 : at + 6], "little")
            if kind == 0 and not any(block[at:end]):
                break  # space that a file system gave and the run never filled
            if end > len(block) and len(block) < BLOCK:
                return  # the file ends within this chunk
            data = block[begin:end]
            if (
                end > BLOCK
                or kind not in TYPE_CRC
                or zlib.crc32(data, TYPE_CRC[kind]) != int.from_bytes(block[at : at + 4], "little")
            ):
                parts = []
                yield None
                break  # chunks begin anew with the next block
            at = end
            if kind in (WHOLE, FIRST):
                parts = []
            elif not parts:
                continue  # its beginning was damaged
            parts.append(data)
            if kind in (WHOLE, LAST):
                yield b"".join(parts)
                parts = []
        at = 0
