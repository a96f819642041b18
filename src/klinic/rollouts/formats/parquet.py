"""Parquet files of completions: what TRL writes at every logging step, and tables that people save."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping
from typing import Any

from klinic.errors import MissingExtra, UnreadableInput
from klinic.rollouts.columns import columns
from klinic.rollouts.dump import Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.places import parts_of
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import rows_of

ORDER = 10
MAGIC = b"PAR1"
AT_ONCE = 512
WRITTEN = ("completion", "response", "output", "generation")
# Column names stand at the end of a file; those of a short file stand in its head as well, and a long one is told by its path.


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether it is a Parquet file named like one of completions, or one whose columns are seen in its head."""
    if head[:4] != MAGIC:
        return False
    wanted = (*WRITTEN, *(names[c] for c in ("completion",) if c in names))
    return any(
        word in name.lower() for word in ("completion", "rollout", "generation", "sample")
    ) or any(word.encode() in head for word in wanted)


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches of the whole file. Raises UnreadableInput where it is damaged or holds no samples, MissingExtra without DuckDB."""
    if since == 0:
        yield from packed(_rows(dump, names))


def _rows(dump: Dump, names: Mapping[str, str]) -> Iterator[list[Rollout]]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra(
            "a Parquet file needs DuckDB to be read",
            str(dump.path),
            "pip install 'klinic[parquet]'",
        ) from None
    source = glob.escape(str(dump.path)).replace("'", "''")
    try:
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            found = connection.execute(
                f"SELECT * FROM read_parquet('{source}', hive_partitioning = false)"
            )
            keys = [column[0] for column in found.description or ()]
            take: Any = None
            while rows := found.fetchmany(AT_ONCE):
                made = [dict(zip(keys, row, strict=True)) for row in rows]
                if take is None:
                    at = columns(made, names, parts_of(dump.trainer))
                    if not at.samples():
                        raise UnreadableInput(
                            "no column of completions",
                            str(dump.path),
                            "name it: --map completion=KEY",
                        )
                    take = rows_of(dump, at)
                yield from map(take, made)
    except duckdb.Error as trouble:
        reason = str(trouble).splitlines()[0][:120]
        raise UnreadableInput(
            f"a damaged Parquet file ({reason})", str(dump.path), "write it again, or leave it out"
        ) from None
