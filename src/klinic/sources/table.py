"""CSV and TSV: a header, then a row a step; or long rows of step, key, value."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from klinic.sources.lines import LINE_LIMIT, Ending, lines
from klinic.sources.rows import Reading, number, step_of

ORDER = 30
LONG_KEYS = {"key", "metric", "tag", "name"}


def sniff(name: str, head: str) -> bool:
    """The first line names columns, and the second has as many cells."""
    rows = [line for line in head.split("\n", 6)[:6] if line.strip()]
    delimiter = _delimiter(rows[0]) if len(rows) > 1 else None
    if delimiter is None or "=" in rows[0]:
        return False
    header, first = _cells(rows[0], delimiter), _cells(rows[1], delimiter)
    if len(header) < 2 or any(number(cell) is not None for cell in header if cell.strip()):
        return False
    if cut_line(header):
        return False
    return (
        len(first) == len(header)
        and sum(number(cell) is not None for cell in first) >= 1
        and all(len(cell) < 200 for cell in header)
    )


def cut_line(header: list[str]) -> bool:
    """Whether these are no names of columns but a console line cut at its commas, such as ``[1,0]<stdout>: ...``."""
    return any(cell.count("[") != cell.count("]") for cell in header)


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading``; empty cells are not logged, cells such as 21.1% are shares."""
    delimiter, ending = ",", Ending()

    def texts() -> Iterator[str]:
        for _, text in lines(stream, head, ending):
            if text is None:
                reading.holds["overlong lines"] += 1
            elif text.strip():
                yield text

    source = texts()
    first = next(source, "")
    delimiter = _delimiter(first) or ","
    header = [cell.strip() for cell in _cells(first, delimiter)]
    lowered = [name.lower() for name in header]
    long = len(header) <= 5 and any(name in LONG_KEYS for name in lowered) and "value" in lowered
    counted, values = 0, dict[str, float]()
    csv.field_size_limit(LINE_LIMIT)
    for cells in _rows(csv.reader(source, delimiter=delimiter), reading):
        reading.holds["rows"] += 1
        row = {name: cell for name, cell in zip(header, cells, strict=False)}
        step = step_of({name.lower(): value for name, value in row.items()})
        if long:
            key = next(row.get(name, "") for name in header if name.lower() in LONG_KEYS)
            found = number(row.get(header[lowered.index("value")]))
            values = {key: found} if key and found is not None else {}
        else:
            values = {
                name: found
                for name, cell in row.items()
                if name.lower() not in ("step", "global_step", "wall time")
                and (found := number(cell)) is not None
            }
        if step is None:
            counted += 1
            step, reading.numbered = counted, "counted"
        reading.add(step, values)
    if not ending.ended and values:
        reading.forget_last(next(reversed(values)))


def _rows(cells: Iterator[list[str]], reading: Reading) -> Iterator[list[str]]:
    while True:
        try:
            yield next(cells)
        except StopIteration:
            return
        except csv.Error:
            reading.holds["broken lines"] += 1


def _delimiter(line: str) -> str | None:
    best = max(",\t;", key=line.count)
    return best if line.count(best) else None


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []
