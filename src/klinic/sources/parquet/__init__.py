"""Parquet tables of metrics. DuckDB, which reads them, is an extra and imported only when one is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from klinic.errors import MissingExtra, UnreadableInput
from klinic.sources.rows import Reading

if TYPE_CHECKING:
    from klinic.sources.parquet.table import Table

ORDER = 5
MAGIC = b"PAR1"


def claims(name: str) -> bool:
    """Whether a file of this name is one."""
    return name.lower().endswith((".parquet", ".pq"))


def sniff_bytes(name: str, head: bytes) -> bool:
    """Its name or its first four bytes say so."""
    return claims(name) or head.startswith(MAGIC)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading``, or a part of it for each run. Raises UnreadableInput where it is damaged or has no steps."""
    join([("", decode(stream, head, reading.at))], reading)


def decode(stream: BinaryIO, head: bytes, at: str) -> Table:
    """The columns of one file. Raises MissingExtra without DuckDB."""
    if at == "-":
        raise UnreadableInput(
            "a Parquet file cannot be read from standard input", at, "name the file itself"
        )
    try:
        import duckdb  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "a Parquet file needs DuckDB to be read", at, "pip install 'klinic[parquet]'"
        ) from None
    from klinic.sources.parquet.table import table

    return table(at)


def join(parts: list[tuple[str, Table]], reading: Reading) -> None:
    """Add the files of one folder: of a run that goes on over several (Neptune's parts), each point counts."""
    from klinic.sources.parquet.together import joined

    joined([found for _, found in parts], reading)
