"""Jupyter notebooks: what the cells printed, and the tables that trainers draw into them.

The text of all outputs is read as one console log, in the order of the cells; an HTML table (transformers' and Unsloth's
progress callback draws Step, Training Loss and the metrics) is read as a printed table.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, BinaryIO

from klinic.errors import UnreadableInput
from klinic.sources.console.reader import Console
from klinic.sources.rows import Reading, number

ORDER = 5
NOTEBOOK_LIMIT = 256 << 20  # bytes; a whole document must be held at once


def sniff(name: str, head: str) -> bool:
    """It is called .ipynb, or opens like a notebook."""
    start = head.lstrip()
    return start.startswith("{") and (
        name.endswith(".ipynb") or start[1:].lstrip().startswith('"cells"')
    )


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` from every output. Raises UnreadableInput where the notebook is broken or too large."""
    data = head + stream.read(NOTEBOOK_LIMIT)
    if len(data) > NOTEBOOK_LIMIT:
        raise UnreadableInput(
            "a notebook of over 256 MiB", reading.at, "save the cell's output as a text log"
        )
    try:
        document = json.loads(data.decode("utf-8", "replace"))
        cells = document["cells"]
    except (ValueError, RecursionError, KeyError, TypeError):
        raise UnreadableInput(
            "a broken notebook",
            reading.at,
            "save it again, or save the cell's output as a text log",
        ) from None
    console = Console(reading)
    printed = "\n".join(_printed(cells))
    reading.head = printed[: 1 << 17]
    console.read(io.BytesIO(printed.encode("utf-8")), b"")
    for output in _outputs(cells):
        page = _text(output.get("data", {}).get("text/html"))
        if "<table" in page:
            _tables(page, reading)


def _outputs(cells: Any) -> Iterator[dict[str, Any]]:
    for cell in cells if isinstance(cells, list) else ():
        found = cell.get("outputs") if isinstance(cell, dict) else None
        for output in found if isinstance(found, list) else ():
            if isinstance(output, dict):
                if not isinstance(output.get("data", {}), dict):
                    output = {**output, "data": {}}
                yield output


def _printed(cells: Any) -> Iterator[str]:
    for cell in cells if isinstance(cells, list) else ():
        # The source says how the trainer was set up: GRPOConfig(learning_rate=5e-6, ...).
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            yield _text(cell.get("source"))
            for output in _outputs([cell]):
                yield _text(output.get("text"))
                yield _text(output.get("traceback"), "\n")
                if "text/html" not in output.get("data", {}):
                    yield _text(output.get("data", {}).get("text/plain"))


def _text(found: Any, glue: str = "") -> str:
    if isinstance(found, list):
        return glue.join(part for part in found if isinstance(part, str))
    return found if isinstance(found, str) else ""


def _tables(page: str, reading: Reading) -> None:
    parser = _Tables()
    parser.feed(page)
    for table in parser.tables:
        header, *rows = [row for row in table if row] or [[]]
        if not rows or not header or header[0].strip().lower() != "step":
            continue
        for row in rows:
            found = [number(cell.replace(",", "")) for cell in row]
            if len(found) == len(header) and found[0] is not None:
                values = {k: v for k, v in zip(header[1:], found[1:], strict=True) if v is not None}
                reading.holds["rows"] += 1
                reading.add(int(found[0]), values)


class _Tables(HTMLParser):
    """Cells of every table, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Open a table, a row or a cell."""
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        """Close a cell."""
        if tag in ("td", "th") and self._cell is not None and self.tables and self.tables[-1]:
            name = " ".join("".join(self._cell).split()).replace(" / ", "/")
            self.tables[-1][-1].append(name)
            self._cell = None

    def handle_data(self, data: str) -> None:
        """Text of the open cell."""
        if self._cell is not None:
            self._cell.append(data)
