"""Opens another program's SQLite database for reading: nothing is written into it or beside it.

SQLite makes files beside a database in WAL mode even to read it, and cannot read one whose writer was killed without
mending it. So one at rest is opened as immutable, one whose writer is at work together with it, and what would have to be
mended is copied first. Formats: sqlite.org/fileformat.html, sqlite.org/wal.html (read-only databases).
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import quote

from klinic.errors import UnreadableInput

PATIENCE = 2.0  # seconds for a writer to finish its transaction; a tracker's takes milliseconds
WAL = 2  # of the file's header: "read version"
TRIES = 3  # copies; each fails only if a checkpoint ran meanwhile
BESIDE = ("-wal", "-journal")


@contextmanager
def database(at: str, head: bytes) -> Iterator[sqlite3.Connection]:
    """A connection that reads. head: the file's first bytes, at least 100. Raises UnreadableInput for what goes wrong within."""
    path = Path(at).absolute()
    try:
        with _connection(path, head) as connection:
            yield connection
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError) as trouble:
        reason = str(trouble)
        if "locked" in reason or "busy" in reason:
            raise UnreadableInput(
                "the database is locked: its writer is in the middle of something",
                at,
                "try again in a moment, or when the run has ended",
            ) from None
        raise UnreadableInput(
            f"a damaged database ({reason})",
            at,
            "copy it again, with the -wal file beside it, or rescue it: sqlite3 FILE .recover | sqlite3 NEW.db",
        ) from None


@contextmanager
def _connection(path: Path, head: bytes) -> Iterator[sqlite3.Connection]:
    waiting = [Path(f"{path}{ending}") for ending in BESIDE]
    pending = any(_size(file) for file in waiting)
    if not pending and _pages_missing(path, head):
        raise sqlite3.DatabaseError("it is cut off")
    if not pending and head[19:20] == bytes([WAL]):
        with closing(_open(path, "immutable=1")) as connection:
            yield connection
        return
    if not pending or Path(f"{path}-shm").exists():
        try:
            connection = _open(path, "mode=ro")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.Error as trouble:
            if "locked" in str(trouble) or not pending:
                raise
        else:
            with closing(connection):
                yield connection
            return
    with (
        tempfile.TemporaryDirectory(prefix="klinic-") as folder,
        closing(_open(_copy(path, waiting, Path(folder)), "mode=rw")) as connection,
    ):
        yield connection


def _open(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=PATIENCE, isolation_level=None
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _pages_missing(path: Path, head: bytes) -> bool:
    """Whether the file is shorter than its header says: SQLite notices only where a query comes to the missing pages."""
    if len(head) < 100 or head[24:28] != head[92:96]:
        return len(head) < 100
    size = int.from_bytes(head[16:18], "big")
    return _size(path) < (65536 if size == 1 else size) * int.from_bytes(head[28:32], "big")


def _copy(path: Path, waiting: list[Path], folder: Path) -> Path:
    """A copy with what waits to be written into it. Its writer may go on: only a checkpoint changes the file itself."""
    copy = folder / path.name
    for _ in range(TRIES):
        before = path.stat()
        for file in (path, *waiting):
            if file.exists():
                shutil.copyfile(file, folder / file.name)
        after = path.stat()
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
            return copy
    raise sqlite3.OperationalError("database is locked")
