"""Writes event files, .wandb and .swanlab files byte by byte, for the cases that no library would write on purpose."""

from __future__ import annotations

import json
import math
import struct
import zlib


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def part(number, data):
    """A field of bytes."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def whole(number, value):
    return varint(number << 3) + varint(value)


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def frame(data):
    size = struct.pack("<Q", len(data))
    return size + struct.pack("<I", _crc32c(size)) + data + struct.pack("<I", _crc32c(data))


def simple(tag, value):
    return part(1, tag) + varint(2 << 3 | 5) + struct.pack("<f", value)


def tensor(tag, dtype, content=b"", shape=(), plugin="scalars", fields=b""):
    dims = b"".join(part(2, whole(1, n)) for n in shape)
    held = whole(1, dtype) + part(2, dims) + (part(4, content) if content else b"") + fields
    return part(1, tag) + part(8, held) + part(9, part(1, part(1, plugin)))


def event(step, *values, wall=1.7e9):
    summary = b"".join(part(1, value) for value in values)
    return frame(double(1, wall) + (whole(2, step) if step else b"") + part(5, summary))


def opening(wall=1.7e9):
    return frame(double(1, wall) + part(3, "brain.Event:2"))


def scalars(rows, wall=1.7e9):
    """An event file. rows: (step, {tag: value})."""
    return opening(wall) + b"".join(
        event(step, simple(tag, value), wall=wall + n)
        for n, (step, row) in enumerate(rows)
        for tag, value in row.items()
    )


def items(number, values, nested=True):
    return b"".join(
        part(number, part(2 if nested else 1, key) + part(16, json.dumps(value)))
        for key, value in values.items()
    )


def history(row, nested=True):
    return part(2, items(1, row, nested))


def config(settings):
    return part(5, items(1, settings, nested=False))


def printed(text):
    return part(13, whole(1, 1) + part(3, text))


def wandb_file(records, header=b":W&B\xe1\xbe\x00"):
    """A .wandb file: records in LevelDB chunks, blocks of 32 KiB counted from the start of the file."""
    out = bytearray(header)
    for data in records:
        first = True
        while True:
            left = 32768 - len(out) % 32768
            if left < 7:
                out += b"\0" * left
                continue
            now, data = data[: left - 7], data[left - 7 :]
            kind = {(1, 1): 1, (1, 0): 2, (0, 0): 3, (0, 1): 4}[int(first), int(not data)]
            out += struct.pack("<IHB", zlib.crc32(bytes([kind]) + now), len(now), kind) + now
            first = False
            if not data:
                break
    return bytes(out)


def swanlab_scalar(key, step, value):
    number = double(1, value) if value != 0 or math.copysign(1, value) < 0 else b""
    held = part(1, key) + (whole(2, step) if step else b"") + whole(3, 1)
    return part(13, held + part(4, whole(1, 1_700_000_000 + step)) + part(5, number))


def swanlab_start(name, started=0):
    return part(10, part(1, "project") + part(4, name) + part(12, whole(1, started)))


def swanlab_printed(line):
    return part(16, part(1, line) + whole(2, 1))


def swanlab_file(records, version=2):
    """A .swanlab file: every record counted and dated, in the same chunks as wandb's."""
    numbered = [
        whole(1, n + 1) + part(2, whole(1, 1_700_000_000 + n)) + data
        for n, data in enumerate(records)
    ]
    return wandb_file(numbered, b":SWL\xd6\xe1" + bytes([version]))
