"""TensorBoard's event files. What decodes them is imported only when one is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from klinic.sources.rows import Reading

if TYPE_CHECKING:
    from klinic.sources.tensorboard.events import Events

ORDER = 1
# The first record of every file names the version: "brain.Event:2", within the first 64 bytes.
FIRST_RECORD = b"brain.Event:"


def claims(name: str) -> bool:
    """Whether a file of this name is one: events.out.tfevents.TIME.HOST.PID.N, with any ending."""
    return "tfevents" in name and not name.endswith((".csv", ".json", ".jsonl", ".txt", ".gz"))


def sniff_bytes(name: str, head: bytes) -> bool:
    """Its name or its first record say so."""
    return claims(name) or FIRST_RECORD in head[:64]


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` from one event file. Raises UnreadableInput where it is none."""
    join([("", decode(stream, head, reading.at))], reading)


def decode(stream: BinaryIO, head: bytes, at: str) -> Events:
    """The scalars and settings of one file."""
    from klinic.sources.tensorboard.events import events

    return events(stream, head, at)


def join(parts: list[tuple[str, Events]], reading: Reading) -> None:
    """Add the files of one run, each with the tag group that its folder stands for."""
    from klinic.sources.tensorboard.together import joined

    joined(parts, reading)
