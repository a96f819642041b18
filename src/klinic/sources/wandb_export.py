"""The CSV that wandb's pages export: a column of steps, then "RUN - metric" columns of one or several runs."""

from __future__ import annotations

import csv
import re
from typing import BinaryIO

from klinic.sources.lines import LINE_LIMIT, lines
from klinic.sources.rows import Reading, number
from klinic.sources.table import cut_line

ORDER = 25  # before any other CSV
BETWEEN = " - "
# The least and the greatest value of the points that a drawn point stands for.
BOUNDS = re.compile(r"__?(MIN|MAX)$")
# What a chart's horizontal axis may be that is no step.
TIMES = re.compile(r"time|timestamp|runtime|epoch", re.IGNORECASE)


def sniff(name: str, head: str) -> bool:
    """Every column but the first is named RUN - metric."""
    header = _header(head.partition("\n")[0])
    return (
        len(header) >= 2
        and BETWEEN not in header[0]
        and bool(header[0])
        and not cut_line(header)
        and all(BETWEEN in column for column in header[1:])
    )


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill one reading a run; an empty cell was not logged. The bounds beside a column are left out."""
    texts = (text for _, text in lines(stream, head) if text and text.strip())
    header = _header(next(texts, ""))
    columns = [
        (i, *column.rpartition(BETWEEN)[::2])
        for i, column in enumerate(header)
        if i and not BOUNDS.search(column)
    ]
    timed = bool(TIMES.search(header[0]))
    counted: dict[str, int] = {}
    csv.field_size_limit(LINE_LIMIT)
    for cells in csv.reader(texts):
        reading.holds["rows"] += 1
        step = number(cells[0]) if cells else None
        if step is None or step != step or abs(step) > 1 << 62:
            continue
        rows: dict[str, dict[str, float]] = {}
        for i, run, metric in columns:
            if i < len(cells) and (value := number(cells[i])) is not None:
                rows.setdefault(run, {})[metric] = value
        for run, row in rows.items():
            part = reading.part(run)
            if timed:
                part.numbered = "counted"
                step = counted[run] = counted.get(run, 0) + 1
            part.add(int(step), row)


def _header(line: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line.rstrip("\r")]), [])]
    except csv.Error:
        return []
