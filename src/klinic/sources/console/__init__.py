"""A console log. Its reader is imported only when one is read: its patterns cost every other start 10 ms."""

from __future__ import annotations

import io
from typing import BinaryIO

from klinic.sources.rows import HEAD_CHARS, Reading

ORDER = 90  # asked last: any text can be a console log


def sniff(name: str, head: str) -> bool:
    """Whatever no other format wanted."""
    return True


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading``: rows with a step at once, rows without one when the whole log is known."""
    from klinic.sources.console.reader import Console

    Console(reading).read(stream, head)


def listen(said: bytes, at: str, reading: Reading) -> None:
    """Add the console that a tracker kept beside its numbers.

    Tracebacks, printed settings and the trainer's words stand there; its own numbers count where no row was logged.
    """
    alone = not reading.columns
    heard = reading if alone else Reading(at, reading.vocabulary)
    read(io.BytesIO(said), b"", heard)
    reading.head += said[:HEAD_CHARS].decode("utf-8", "replace")
    if alone:
        return
    for event in heard.events:
        reading.note(event.kind, event.at, event.lines)
    for key, setting in heard.config.items():
        reading.config.setdefault(key, setting)
