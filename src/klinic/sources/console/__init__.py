"""A console log. Its reader is imported only when one is read: its patterns cost every other start 10 ms."""

from __future__ import annotations

from typing import BinaryIO

from klinic.sources.rows import Reading

ORDER = 90  # asked last: any text can be a console log


def sniff(name: str, head: str) -> bool:
    """Whatever no other format wanted."""
    return True


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading``: rows with a step at once, rows without one when the whole log is known."""
    from klinic.sources.console.reader import Console

    Console(reading).read(stream, head)
