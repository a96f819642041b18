"""What one event file says: its scalars, and the settings its text and hparams tags hold.

Messages: tensorboard/compat/proto/{event,summary,tensor}.proto. Event: wall_time 1, step 2, summary 5. Value: tag 1,
simple_value 2 (torch's and tensorboardX's writers), tensor 8 (TensorFlow 2's), metadata 9.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from klinic.errors import UnreadableInput
from klinic.sources.tensorboard.records import BrokenFrame, records
from klinic.sources.tensorboard.settings import holds_settings, hparams, settings_in
from klinic.sources.tensorboard.tensor import FLOAT, number_in, texts_in
from klinic.sources.wire import BYTES, FIXED32, VARINT, fields, signed, text, varint

WALL_TIME = 9  # bytes of the first field, with which every writer begins an event
STEP_TAG = 2 << 3 | VARINT
SHAPES_KEPT = (
    100_000  # distinct beginnings of an event that are remembered; a run has a few hundred
)


@dataclass(slots=True)
class Events:
    """Points in the order of the file. tags: by number; which, steps, values: (n_points,), which holds tag numbers.

    first, last: wall time of the first and the last event, seconds since 1970. broken: damaged records.
    """

    at: str
    tags: list[str] = field(default_factory=list)
    which: array[int] = field(default_factory=lambda: array("q"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    settings: dict[str, Any] = field(default_factory=dict)
    first: float = 0.0
    last: float = 0.0
    broken: int = 0


def events(stream: BinaryIO, head: bytes, at: str) -> Events:
    """Read one file. Raises UnreadableInput where not even its first record is whole."""
    found = Events(at)
    decoder = _Decoder(found)
    seen = False
    try:
        for data, begins, ends, broken in records(stream, head):
            found.broken += broken
            if begins:
                decoder.read(data, begins, ends)
                if not seen:
                    found.first = decoder.wall(data, begins[0])
                found.last = max(found.last, decoder.wall(data, begins[-1]))
                seen = True
    except BrokenFrame:
        found.broken += 1
        if not seen:
            raise UnreadableInput(
                "it is named like a TensorBoard event file, and its first record is damaged",
                at,
                "copy the file again (of a git repository: git lfs pull), or name the run's text log",
            ) from None
    return found


class _Decoder:
    """Most events differ from an earlier one in time, step and value only: those are cut by position, not parsed.

    shapes: what stands between the step and the value and behind the value -> number of the tag, and how to read the value.
    """

    def __init__(self, found: Events) -> None:
        self.found = found
        self.numbers: dict[str, int] = {}
        self.shapes: dict[tuple[bytes, bytes], tuple[int, Callable[..., Any]]] = {}
        self.tails = [(4, 0)]  # bytes of the value, bytes behind it

    @staticmethod
    def wall(data: bytes, begin: int) -> float:
        """The time of an event, seconds since 1970; 0 where it does not begin with it."""
        if data[begin : begin + 1] != b"\x09":
            return 0.0
        seconds = float(struct.unpack_from("<d", data, begin + 1)[0])
        return seconds if abs(seconds) < 1e12 else 0.0

    def read(self, data: bytes, begins: list[int], ends: list[int]) -> None:
        """Take every event of a stretch of the file."""
        found, shapes, tails = self.found, self.shapes, self.tails
        which, steps, values = found.which.append, found.steps.append, found.values.append
        for begin, end in zip(begins, ends, strict=True):
            cut = begin + WALL_TIME
            step = 0
            if cut < end and data[cut] == STEP_TAG:
                step = data[cut + 1]
                cut += 2
                if step > 127:
                    try:
                        step, cut = varint(data, cut - 1)
                        step = signed(step)
                    except ValueError:
                        found.broken += 1
                        continue
            for size, behind in tails:
                tail = end - behind
                shape = shapes.get((data[cut : tail - size], data[tail:end]))
                if shape is not None:
                    which(shape[0])
                    steps(step)
                    values(shape[1](data, tail - size)[0])
                    break
            else:
                try:
                    self._parse(data, begin, cut, end)
                except (ValueError, struct.error):
                    found.broken += 1

    def _parse(self, data: bytes, begin: int, cut: int, end: int) -> None:
        step, summaries = 0, []
        for number, kind, a, b in fields(data, begin, end):
            if number == 2 and kind == VARINT:
                step = signed(a)
            elif number == 5 and kind == BYTES:
                summaries.append((a, b))
        entries = [
            (a, b)
            for first, last in summaries
            for number, kind, a, b in fields(data, first, last)
            if number == 1 and kind == BYTES
        ]
        for first, last in entries:
            self._value(data, first, last, step, (cut, end) if len(entries) == 1 else None)

    def _value(
        self, data: bytes, first: int, last: int, step: int, whole: tuple[int, int] | None
    ) -> None:
        tag, simple, tensor, plugin, content = "", None, None, "", b""
        for number, kind, a, b in fields(data, first, last):
            if number == 1 and kind == BYTES:
                tag = text(data, a, b)
            elif number == 2 and kind == FIXED32:
                simple = (a, b)
            elif number == 8 and kind == BYTES:
                tensor = (a, b)
            elif number == 9 and kind == BYTES:
                plugin, content = _plugin(data, a, b)
        if simple is not None:
            found = FLOAT.unpack_from(data, simple[0])[0]
            self._add(tag, step, found)
            self._remember(data, tag, simple[0], simple[1], FLOAT.unpack_from, whole)
            return
        if plugin == "hparams":
            self.found.settings.update(hparams(content))
        if tensor is None:
            return
        if plugin in ("", "scalars"):
            scalar = number_in(data, *tensor)
            if scalar is not None:
                value, a, b, unpack = scalar
                self._add(tag, step, value)
                if unpack is not None:
                    self._remember(data, tag, a, b, unpack, whole)
                return
        if plugin in ("", "text") and holds_settings(tag):
            for said in texts_in(data, *tensor):
                self.found.settings.update(settings_in(said))

    def _add(self, tag: str, step: int, value: float) -> None:
        number = self.numbers.get(tag)
        if number is None:
            number = self.numbers[tag] = len(self.found.tags)
            self.found.tags.append(tag)
        self.found.which.append(number)
        self.found.steps.append(step)
        self.found.values.append(value)

    def _remember(
        self,
        data: bytes,
        tag: str,
        a: int,
        b: int,
        unpack: Callable[..., Any],
        whole: tuple[int, int] | None,
    ) -> None:
        # An event with several values has no one tail.
        if whole is None or len(self.shapes) >= SHAPES_KEPT:
            return
        cut, end = whole
        if not cut <= a:
            return
        tail = (b - a, end - b)
        if tail not in self.tails:
            if len(self.tails) >= 8:
                return
            self.tails.append(tail)
        self.shapes[data[cut:a], data[b:end]] = (self.numbers[tag], unpack)


def _plugin(data: bytes, begin: int, end: int) -> tuple[str, bytes]:
    """Name and content of a value's metadata: SummaryMetadata.plugin_data 1 {plugin_name 1, content 2}."""
    name, content = "", b""
    for number, kind, a, b in fields(data, begin, end):
        if number == 1 and kind == BYTES:
            for inner, sort, c, d in fields(data, a, b):
                if inner == 1 and sort == BYTES:
                    name = text(data, c, d)
                elif inner == 2 and sort == BYTES:
                    content = data[c:d]
    return name, content
