"""The folder of a run with mode="local": ``logs/COLUMN/N.log`` has a line of JSON a point, {"index", "data", "create_time"}.

A column is a number; which metric it is stands in the database runs.swanlab beside the run's folder (early versions spelt the
name itself, as in a web address). These files are written at once, the .swanlab file only by and by.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from klinic.errors import UnreadableInput
from klinic.sources.jsonl import loads
from klinic.sources.rows import number
from klinic.sources.swanlab import INDEX

if TYPE_CHECKING:
    from klinic.sources.swanlab.history import History

HEADER = 100  # bytes of a database


def history(folder: Path) -> History:
    """What a run's folder holds. Raises UnreadableInput where nothing says which metrics its numbers are."""
    from klinic.sources.swanlab.history import History

    found = History(str(folder))
    names = _names(folder, found)
    for column in _columns(folder):
        name = names.get(column.name, "" if column.name.isdecimal() else unquote(column.name))
        if name:
            for step, value in _points(column, found):
                found.scalars.add(name, step, value)
        elif any(_points(column, found)):
            raise UnreadableInput(
                "columns of numbers without a name: runs.swanlab, which names them, does not lie beside the run's folder",
                str(folder),
                "copy runs.swanlab there, or the run's .swanlab file into the folder",
            )
    return found


def complete(found: History, folder: Path) -> None:
    """Add the points that the .swanlab file in this folder lacks yet, if their metrics are known."""
    if not (folder / "logs").is_dir():
        return
    try:
        names = _names(folder, found)
    except UnreadableInput:  # the file itself has all that was written
        return
    known: dict[str, set[int]] = {}
    for key, step, _ in found.scalars.logged():
        known.setdefault(key, set()).add(step)
    for column in _columns(folder):
        if (name := names.get(column.name)) is not None:
            had = known.get(name, set())
            for step, value in _points(column, found):
                if step not in had:
                    found.scalars.add(name, step, value)


def _names(folder: Path, found: History) -> dict[str, str]:
    """Column -> metric, as the database beside says; the run's name too."""
    index = folder.resolve().parent / INDEX
    if not index.is_file():
        return {}
    from klinic.sources.sqlite.opened import database

    with index.open("rb") as stream:
        head = stream.read(HEADER)
    with database(str(index), head) as connection:
        run = connection.execute(
            "SELECT id, name FROM experiment WHERE run_id = ?", (folder.resolve().name,)
        ).fetchone()
        if run is None:
            return {}
        found.name = found.name or str(run[1])
        columns = connection.execute("SELECT * FROM tag WHERE experiment_id = ?", (run[0],))
        at = {part[0]: i for i, part in enumerate(columns.description)}
        return {
            str(row[at["folder"]]): str(row[at["name"]])
            for row in columns
            if "folder" in at and row[at["folder"]] is not None
        }


def _columns(folder: Path) -> list[Path]:
    return sorted(
        (path for path in (folder / "logs").iterdir() if path.is_dir()),
        key=lambda path: (len(path.name), path.name),
    )


def _points(column: Path, found: History) -> Iterator[tuple[int, float]]:
    files = [path for path in column.glob("*.log") if path.stem.isdecimal()]
    for path in sorted(files, key=lambda path: int(path.stem)):
        for line in path.read_bytes().splitlines():
            try:
                row = loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                found.broken += 1
                continue
            step = row.get("index") if isinstance(row, dict) else None
            value = number(row.get("data")) if isinstance(row, dict) else None
            if isinstance(step, int) and not isinstance(step, bool) and value is not None:
                yield step, value
