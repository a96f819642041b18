"""The one number, or the texts, that a TensorProto holds (tensorflow/core/framework/tensor.proto)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from klinic.sources.wire import BYTES, VARINT, fields, signed, text, varint

FLOAT = struct.Struct("<f")
# dtype -> how its bytes in tensor_content are read (types.proto).
CONTENT = {
    1: FLOAT,
    2: struct.Struct("<d"),
    3: struct.Struct("<i"),
    4: struct.Struct("<B"),
    5: struct.Struct("<h"),
    6: struct.Struct("<b"),
    9: struct.Struct("<q"),
    10: struct.Struct("<?"),
    17: struct.Struct("<H"),
    19: struct.Struct("<e"),
    22: struct.Struct("<I"),
    23: struct.Struct("<Q"),
}
HALF, BFLOAT16 = 19, 14
FLOAT_VAL, DOUBLE_VAL, HALF_VAL, STRING_VAL = 5, 6, 13, 8
WHOLE_VALS = {7, 10, 11, 16, 17}  # int_val, int64_val, bool_val, uint32_val, uint64_val
UNSIGNED_VALS = {16, 17}

Scalar = tuple[float, int, int, Callable[..., Any] | None]


def number_in(data: bytes, begin: int, end: int) -> Scalar | None:
    """(value, begin, end, how to read it there) of a tensor of one number; None for a text or for several numbers.

    The last is None where the value has no fixed place (a half, or a whole number, is a varint).
    """
    dtype, found = 0, None
    for number, kind, a, b in fields(data, begin, end):
        if number == 1 and kind == VARINT:
            dtype = a
        elif number == 2 and kind == BYTES:
            if not _of_one(data, a, b):
                return None
        elif number == 4 and b > a:
            found = _content(data, a, b, dtype)
        elif number in (FLOAT_VAL, DOUBLE_VAL):
            kept = CONTENT[1 if number == FLOAT_VAL else 2]
            if b - a != kept.size:
                return None
            found = (kept.unpack_from(data, a)[0], a, b, kept.unpack_from)
        elif number in WHOLE_VALS or number == HALF_VAL:
            whole = a
            if kind == BYTES:  # packed
                whole, after = varint(data, a)
                if after != b:
                    return None
            if number == HALF_VAL:
                found = (_short(whole, dtype), a, b, None)
            else:
                whole = whole if number in UNSIGNED_VALS else signed(whole)
                found = (float(whole), a, b, None)
    return found


def _content(data: bytes, a: int, b: int, dtype: int) -> Scalar | None:
    if dtype == BFLOAT16 and b - a == 2:
        return _short(int.from_bytes(data[a:b], "little"), dtype), a, b, None
    kept = CONTENT.get(dtype)
    if kept is None or b - a != kept.size:
        return None
    return float(kept.unpack_from(data, a)[0]), a, b, kept.unpack_from


def _short(bits: int, dtype: int) -> float:
    if dtype == BFLOAT16:
        return float(FLOAT.unpack((bits << 16 & 0xFFFFFFFF).to_bytes(4, "little"))[0])
    return float(struct.unpack("<e", (bits & 0xFFFF).to_bytes(2, "little"))[0])


def _of_one(data: bytes, begin: int, end: int) -> bool:
    """Whether every dimension is 1: TensorShapeProto.dim 2 {size 1}."""
    for number, kind, a, b in fields(data, begin, end):
        if number == 2 and kind == BYTES:
            size = next((c for inner, _, c, _ in fields(data, a, b) if inner == 1), 0)
            if size != 1:
                return False
    return True


def texts_in(data: bytes, begin: int, end: int) -> list[str]:
    """Every string of a tensor of strings."""
    return [
        text(data, a, b)
        for number, kind, a, b in fields(data, begin, end)
        if number == STRING_VAL and kind == BYTES
    ]
