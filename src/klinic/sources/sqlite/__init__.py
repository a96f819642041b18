"""Trackers' SQLite databases: MLflow's (mlflow.db) and Trackio's (PROJECT.db). sqlite3 is imported only when one is read."""

from __future__ import annotations

from typing import BinaryIO

from klinic.errors import UnreadableInput
from klinic.sources.rows import Reading

ORDER = 3
MAGIC = b"SQLite format 3\0"
ENDINGS = (".db", ".sqlite", ".sqlite3")


def claims(name: str) -> bool:
    """Whether a file of this name may be one; a folder holds others too, which are passed over."""
    return name.lower().endswith(ENDINGS)


def sniff_bytes(name: str, head: bytes) -> bool:
    """Its first bytes say so; of one that is cut off or damaged only the name is left."""
    return head.startswith(MAGIC) or claims(name)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill one reading a run. Raises UnreadableInput where the database is damaged, locked or of no tracker."""
    if reading.at == "-":
        raise UnreadableInput(
            "a database cannot be read from standard input", reading.at, "name the file itself"
        )
    if not head.startswith(MAGIC):
        raise UnreadableInput(
            "it is named like a database, and does not begin like one",
            reading.at,
            "name the tracker's database, or the run's text log",
        )
    from klinic.sources.sqlite.opened import database
    from klinic.sources.sqlite.runs import fill

    with database(reading.at, head) as connection:
        fill(connection, reading)
