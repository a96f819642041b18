"""wandb's own files (run-ID.wandb). What decodes them is imported only when one is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from klinic.sources.rows import Reading

if TYPE_CHECKING:
    from klinic.sources.wandb.history import History

ORDER = 2
MAGIC = b":W&B"


def claims(name: str) -> bool:
    """Whether a file of this name is one."""
    return name.endswith(".wandb")


def sniff_bytes(name: str, head: bytes) -> bool:
    """Its name or its first four bytes say so."""
    return claims(name) or head.startswith(MAGIC)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` from one file. Raises UnreadableInput where it is none, or holds no record."""
    join([("", decode(stream, head, reading.at))], reading)


def decode(stream: BinaryIO, head: bytes, at: str) -> History:
    """The history rows, the configuration and the console of one file."""
    from klinic.sources.wandb.history import history

    return history(stream, head, at)


def join(parts: list[tuple[str, History]], reading: Reading) -> None:
    """Add the files of one run, which was resumed as often as there are files."""
    from klinic.sources.wandb.together import joined

    joined(parts, reading)
