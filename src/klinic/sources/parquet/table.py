"""One Parquet file, read through DuckDB: the points of each run in it, and what Neptune's exporter says of it besides."""

from __future__ import annotations

import glob
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from klinic.errors import UnreadableInput
from klinic.sources.parquet.layout import Layout, holds_samples, layout
from klinic.sources.points import Points

# Neptune's kinds of a value that stands once, and the column that holds it.
ONCE = {"int": "int_value", "float": "float_value", "string": "string_value", "bool": "bool_value"}
SERIES = "float_series"
NEPTUNE_NAMES = ("sys.name", "sys.custom_run_id")
MESSAGE = 120  # characters of DuckDB's own words that are handed on


@dataclass(slots=True)
class Table:
    """points, settings, names: of each run; "" is the run of a table that names none.

    samples: rows of rollouts. without_step: rows that were passed over. counted: its steps are no whole numbers, and were
    counted.
    """

    at: str
    points: dict[str, Points] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    samples: int = 0
    without_step: int = 0
    counted: bool = False


def table(at: str) -> Table:
    """Read one file. Raises UnreadableInput where it is damaged, or no table of metrics."""
    import duckdb

    found = Table(at)
    try:
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            source = f"read_parquet('{glob.escape(at).replace(chr(39), chr(39) * 2)}', hive_partitioning = false)"
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            kinds = {name: kind for name, kind, *_ in described}
            if holds_samples(kinds):
                count = connection.execute(f"SELECT count(*) FROM {source}").fetchone()
                found.samples = count[0] if count else 0
                return found
            columns = layout(kinds, at)
            if columns.kind is not None and columns.run is not None:
                _once(connection, source, kinds, columns, found)
            _read(connection, source, columns, found)
    except duckdb.Error as trouble:
        reason = str(trouble).splitlines()[0][:MESSAGE]
        raise UnreadableInput(
            f"a damaged Parquet file ({reason})", at, "write it again, or name the run's text log"
        ) from None
    return found


def _read(connection: Any, source: str, columns: Layout, found: Table) -> None:
    wanted = [
        f"TRY_CAST({_quoted(columns.step)} AS {'BIGINT' if columns.whole_steps else 'DOUBLE'})"
    ]
    wanted += [f"epoch_us({_quoted(columns.time)}::TIMESTAMP)" if columns.time else "NULL::BIGINT"]
    for text in (columns.run, columns.name, columns.key):
        wanted.append(f"{_quoted(text)}::VARCHAR" if text is not None else "''")
    wanted += [f"{_quoted(column)}::DOUBLE" for column in columns.numbers]
    kept = f" WHERE {_quoted(columns.kind)} = '{SERIES}'" if columns.kind is not None else ""
    named = ", ".join(f"{how} AS c{i}" for i, how in enumerate(wanted))
    result = connection.execute(f"SELECT {named} FROM {source}{kept}").fetchnumpy()
    data = [np.ma.asarray(result[f"c{i}"]) for i in range(len(wanted))]
    steps, times, runs, names, keys = data[:5]
    stepped = ~np.ma.getmaskarray(steps) & np.isfinite(steps.filled(0))
    found.without_step = int((~stepped).sum())
    whole, found.counted = _whole(steps.filled(0), stepped)
    if columns.time is None or np.ma.getmaskarray(times).any():
        when = np.arange(len(whole), dtype=np.int64)
    else:
        when = times.filled(0).astype(np.int64)
    rows = np.flatnonzero(stepped)
    for run, taken in _each(runs, rows, columns.run):
        points = found.points.setdefault(run, Points())
        if columns.name is not None:
            found.names.setdefault(run, str(names[taken[0]]))
        parts = _each(keys, taken, columns.key)
        if columns.key is not None and columns.time is None and _in_blocks(parts):
            when[taken] = 0  # sorted by key: the rows do not say in which order they were logged
        for key, part in parts:
            for column, values in zip(columns.numbers, data[5:], strict=True):
                logged = part[~np.ma.getmaskarray(values)[part]]
                points.extend(key or column, whole[logged], values.data[logged], when[logged])


def _each(
    words: Any, rows: npt.NDArray[np.intp], column: str | None
) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """(word, its rows) of every word of a column, in the order in which they come."""
    if column is None or not len(rows):
        return [("", rows)] if len(rows) else []
    numbers: dict[Any, int] = {}
    which = np.array(
        [numbers.setdefault(word, len(numbers)) for word in words[rows].filled("").tolist()]
    )
    order = np.argsort(which, kind="stable")
    parts = np.split(rows[order], np.cumsum(np.bincount(which))[:-1])
    return [(str(word), part) for word, part in zip(numbers, parts, strict=True)]


def _in_blocks(parts: list[tuple[str, npt.NDArray[np.intp]]]) -> bool:
    """Whether the rows of each key follow each other."""
    return len(parts) > 1 and all(part[-1] - part[0] + 1 == len(part) for _, part in parts)


def _whole(
    steps: npt.NDArray[Any], stepped: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], bool]:
    """Steps as whole numbers; where they are none (a time, a share of an epoch), each is counted by its place."""
    if steps.dtype.kind != "f":
        return steps.astype(np.int64), False
    taken = steps[stepped]
    if np.all(taken % 1 == 0) and np.all(np.abs(taken) < 1 << 53):
        return np.where(stepped, steps, 0).astype(np.int64), False
    whole = np.zeros(len(steps), dtype=np.int64)
    whole[stepped] = np.unique(taken, return_inverse=True)[1] + 1
    return whole, True


def _once(
    connection: Any, source: str, kinds: dict[str, str], columns: Layout, found: Table
) -> None:
    """What Neptune keeps beside the series: parameters and the run's name."""
    for kind, column in ONCE.items():
        if column not in kinds:
            continue
        rows = connection.execute(
            f"SELECT {_quoted(columns.run)}::VARCHAR, {_quoted(columns.key)}::VARCHAR, {_quoted(column)}"
            f" FROM {source} WHERE {_quoted(columns.kind)} = '{kind}' AND {_quoted(column)} IS NOT NULL"
        ).fetchall()
        for run, path, value in rows:
            found.settings.setdefault(run or "", {})[str(path).replace("/", ".")] = value
    for run, settings in found.settings.items():
        name = next((settings[key] for key in NEPTUNE_NAMES if settings.get(key)), None)
        if name is not None:
            found.names[run] = str(name)


def _quoted(name: str | None) -> str:
    return '"' + (name or "").replace('"', '""') + '"'
