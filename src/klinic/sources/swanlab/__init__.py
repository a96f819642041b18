"""SwanLab's runs on this machine: run-DATE-ID/run-ID.swanlab, and the folders of mode="local". Decoders are imported when needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from klinic.sources.rows import Reading

if TYPE_CHECKING:
    from klinic.sources.swanlab.history import History

ORDER = 2
MAGIC = b":SWL"
ENDING = ".swanlab"
INDEX = "runs.swanlab"  # a database of the runs beside it
INSIDE = frozenset({"logs", "media", "debug"})


def claims(name: str) -> bool:
    """Whether a file of this name is one."""
    return name.endswith(ENDING) and name != INDEX


def sniff_bytes(name: str, head: bytes) -> bool:
    """Its name or its first four bytes say so."""
    return claims(name) or head.startswith(MAGIC)


def is_log(folder: Path) -> bool:
    """Whether it is a run's folder of mode="local", without the file that holds everything."""
    logs = folder / "logs"
    return logs.is_dir() and any(logs.glob("*/_summary.json")) and not any(folder.glob("*.swanlab"))


def read_folder(folder: Path, reading: Reading) -> None:
    """Fill ``reading`` from a folder of mode="local". Raises UnreadableInput where nothing names its numbers."""
    from klinic.sources.swanlab.local import history
    from klinic.sources.swanlab.together import joined

    joined([("", history(folder))], reading)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` from one file. Raises UnreadableInput where it is none, or holds no record."""
    join([("", decode(stream, head, reading.at))], reading)


def decode(stream: BinaryIO, head: bytes, at: str) -> History:
    """The scalars and the console of one file."""
    from klinic.sources.swanlab.history import history

    return history(stream, head, at)


def join(parts: list[tuple[str, History]], reading: Reading) -> None:
    """Add the files of one run, which was resumed as often as there are files."""
    from klinic.sources.swanlab.together import joined

    joined(parts, reading)
