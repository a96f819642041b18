"""The samples of a run as Parquet in a cache folder, taken in once and added to; the run's own folder is never written to.

index.json     what was taken of each dump, and which parts hold it
part-*.parquet the samples' columns (``Rollout``) and what was measured of them, zstd
steps.msgpack  the description of every step
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from klinic.errors import MissingExtra
from klinic.files import write_whole
from klinic.rollouts.dump import Dump
from klinic.rollouts.find import find
from klinic.rollouts.formats import read
from klinic.rollouts.kept import Described, folder_of, steps_in
from klinic.rollouts.measure import HASHES, NUMBERS, Columns, measure
from klinic.rollouts.portions import Portion, connect, described, in_portions
from klinic.rollouts.rollout import Rollout

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    import duckdb

VERSION = 2  # of the cache; another one is made again
PART_ROWS, PART_TEXT = (
    16384,
    32 * 2**20,
)  # rows and characters of a part (our choice: a part is held in memory once)
SEVERAL = 64 * 2**20  # bytes from which a second process measures
SEVERAL_PORTIONS = 3  # of steps from which a second process describes
WORKERS = min(4, os.cpu_count() or 1)
MEASURED = tuple(name for name in NUMBERS if name not in Rollout.__struct_fields__)

Told = Callable[[int, int], None]  # bytes taken, bytes in all


class Taken(msgspec.Struct):
    """What was taken of one dump. number: of its rows; given up with ``dropped`` when the file is taken again."""

    number: int
    size: int
    changed: int
    until: int
    split: str
    rows: int = 0
    skipped: int = 0


class Index(msgspec.Struct):
    """What the cache holds."""

    version: int = VERSION
    path: str = ""
    dumps: dict[str, Taken] = {}
    parts: list[str] = []
    dropped: list[int] = []
    waiting: list[int] = []  # steps whose description is not up to date
    rows: int = 0
    numbers: int = 0


@dataclass(frozen=True, slots=True)
class News:
    """What one taking-in found. steps: whose samples are new or gone."""

    rows: int
    skipped: int
    steps: tuple[int, ...]


class Store:
    """The samples under one path. ``take`` brings it up to date; ``table`` is what queries read."""

    def __init__(
        self, path: Path, names: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        try:
            import duckdb  # noqa: F401
        except ImportError:
            raise MissingExtra(
                "samples are kept with DuckDB", str(path), "pip install 'klinic[rollouts]'"
            ) from None
        self.path, self.names = path, dict(names or {})
        self.folder = folder or folder_of(path, self.names)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.index = self._kept_index()
        self.steps: Described = self._kept_steps()

    # Taking in

    def take(self, told: Told | None = None) -> News:
        """Take in what is new under the path: rows that were added, and dumps that were changed.

        Raises UnreadableInput where nothing can be read.
        """
        with _alone(self.folder):
            self.index, self.steps = self._kept_index(), self._kept_steps()
            dumps = self.dumps()
            touched = self._forget_changed({str(d.path) for d in dumps}) | set(self.index.waiting)
            todo = [
                (dump, since, size)
                for dump in dumps
                if (found := self._news_of(dump)) is not None
                for since, size in [found]
            ]
            size = sum(at - since for _, since, at in todo)
            rows = skipped = 0
            for part, spans in self._measured(todo, size):
                touched |= {row.step for row in part.rows}
                rows += len(part.rows)
                self._write(part)
                for dump, until, taken, passed in spans:
                    entry = self.index.dumps[str(dump.path)]
                    entry.until, entry.rows, entry.skipped = (
                        until,
                        entry.rows + taken,
                        entry.skipped + passed,
                    )
                    skipped += passed
                self._save_index(touched)
                if told is not None:
                    told(
                        sum(
                            min(e.until, e.size) if e.until > 1 else e.size
                            for e in self.index.dumps.values()
                        ),
                        max(size, 1),
                    )
            self._save_index(touched)
            if touched:
                self._describe(touched)
                self._save_index(set())
        return News(rows, skipped, tuple(sorted(touched)))

    def dumps(self) -> list[Dump]:
        """The files that hold samples."""
        return find(self.path, self.names)

    def _news_of(self, dump: Dump) -> tuple[int, int] | None:
        """From where to read a dump, and its size; None where nothing is new."""
        key, stat = str(dump.path), dump.path.stat()
        entry = self.index.dumps.get(key)
        if entry is None:
            self.index.dumps[key] = Taken(
                self.index.numbers, stat.st_size, stat.st_mtime_ns, 0, dump.split
            )
            self.index.numbers += 1
            return 0, stat.st_size
        if (entry.size, entry.changed) == (stat.st_size, stat.st_mtime_ns):
            return None
        entry.size, entry.changed = stat.st_size, stat.st_mtime_ns
        return entry.until, stat.st_size

    def _forget_changed(self, there: set[str]) -> set[int]:
        """Give up the rows of dumps that are gone, shorter than before, or written anew as a whole. Returns their steps."""
        gone = []
        for key, entry in self.index.dumps.items():
            if key not in there:
                gone.append(key)
                continue
            stat = os.stat(key)
            changed = (entry.size, entry.changed) != (stat.st_size, stat.st_mtime_ns)
            if changed and (
                entry.until <= 1 or stat.st_size < entry.until or stat.st_size == entry.size
            ):
                gone.append(key)
        numbers = [self.index.dumps[key].number for key in gone if self.index.dumps[key].rows]
        steps: set[int] = set()
        if numbers and self.index.parts:
            with self.connect() as connection:
                found = connection.execute(
                    f"SELECT DISTINCT step FROM {self.table} WHERE dump IN ({', '.join(map(str, numbers))})"
                ).fetchall()
            steps = {step for (step,) in found}
        for key in gone:
            self.index.dropped.append(self.index.dumps.pop(key).number)
        return steps

    def _measured(
        self, todo: Sequence[tuple[Dump, int, int]], size: int
    ) -> Iterator[tuple[_Part, list[tuple[Dump, int, int, int]]]]:
        """Parts of measured rows, each with what was taken of which dump."""
        batches = self._parts(todo)
        if size < SEVERAL or (os.cpu_count() or 1) < 2:
            for part, spans in batches:
                part.columns = measure(part.rows)
                yield part, spans
            return
        from collections import deque

        with _processes() as pool:
            waiting: deque[Any] = deque()
            encode = msgspec.msgpack.Encoder().encode
            for part, spans in batches:
                waiting.append((part, spans, pool.submit(_measure_packed, encode(part.rows))))
                while len(waiting) > WORKERS:
                    yield _done(waiting.popleft())
            while waiting:
                yield _done(waiting.popleft())

    def _parts(
        self, todo: Sequence[tuple[Dump, int, int]]
    ) -> Iterator[tuple[_Part, list[tuple[Dump, int, int, int]]]]:
        part, spans, text = _Part(), [], 0
        for dump, since, _ in todo:
            number = self.index.dumps[str(dump.path)].number
            for batch in read(dump, since, self.names):
                part.rows += batch.rows
                part.dumps += [number] * len(batch.rows)
                text += sum(len(row.prompt) + len(row.completion) for row in batch.rows)
                spans.append((dump, batch.until, len(batch.rows), batch.skipped))
                if len(part.rows) >= PART_ROWS or text >= PART_TEXT:
                    yield part, spans
                    part, spans, text = _Part(), [], 0
        if spans:
            yield part, spans

    def _write(self, part: _Part) -> None:
        if not part.rows:
            return
        first = self.index.rows
        splits = {entry.number: entry.split for entry in self.index.dumps.values()}
        table: dict[str, Any] = {
            "row": np.arange(first, first + len(part.rows)),
            "dump": np.array(part.dumps),
            "split": np.array([splits[n] for n in part.dumps], dtype=object),
        }
        for name in Rollout.__struct_fields__:
            values = [getattr(row, name) for row in part.rows]
            if name == "reward_parts":
                table[name] = np.array(
                    [msgspec.json.encode(v).decode() for v in values], dtype=object
                )
            elif name in ("step",):
                table[name] = np.array(values, dtype=np.int64)
            elif isinstance(getattr(Rollout(), name), float):
                table[name] = np.array(values, dtype=np.float64)
            else:
                table[name] = np.array(values, dtype=object)
        assert part.columns is not None
        table |= {name: part.columns[name].astype(np.float32) for name in MEASURED}
        table |= {f"hash_{name}": part.columns[f"hash_{name}"] for name in HASHES}
        name = f"part-{len(self.index.parts):06d}.parquet"
        temporary = self.folder / f".{name}"
        with self.connect() as connection:
            connection.register("rows", table)
            connection.execute(
                "COPY (SELECT * REPLACE (CAST(reward_parts AS JSON)::MAP(VARCHAR, DOUBLE) AS reward_parts) FROM rows) "
                f"TO '{_quoted(temporary)}' (FORMAT parquet, COMPRESSION zstd)"
            )
        os.replace(temporary, self.folder / name)
        self.index.parts.append(name)
        self.index.rows += len(part.rows)

    def _describe(self, touched: set[int]) -> None:
        """Describe the touched steps again."""
        split = (
            "train"
            if any(e.split == "train" and e.rows for e in self.index.dumps.values())
            else "eval"
        )
        for step in touched:
            self.steps.pop(step, None)
        if self.index.parts and touched:
            with self.connect() as connection:
                connection.register("touched", {"step": np.array(sorted(touched), dtype=np.int64)})
                counts = connection.execute(
                    f"SELECT step, count(*) FROM {self.table} WHERE split = '{split}' AND step IN (SELECT step FROM touched) "
                    "GROUP BY step ORDER BY step"
                ).fetchall()
            todo = [(self.folder, self.table, split, steps) for steps in in_portions(counts)]
            for steps in self._described(todo):
                self.steps |= steps
        write_whole(self.folder / "steps.msgpack", msgspec.msgpack.encode(self.steps))

    def _described(self, todo: Sequence[Portion]) -> Iterator[Described]:
        if len(todo) < SEVERAL_PORTIONS or (os.cpu_count() or 1) < 2:
            yield from map(described, todo)
            return
        with _processes() as pool:
            yield from pool.map(described, todo)

    # What is kept

    @property
    def table(self) -> str:
        """The samples as a table that SQL can read; those of dumps that were given up are left out."""
        files = ", ".join(f"'{_quoted(self.folder / name)}'" for name in self.index.parts)
        gone = (
            f" WHERE dump NOT IN ({', '.join(map(str, self.index.dropped))})"
            if self.index.dropped
            else ""
        )
        return f"(SELECT * FROM read_parquet([{files}]){gone})"

    def connect(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """A connection whose memory is bounded; what does not fit goes to the cache folder."""
        return connect(self.folder)

    def _kept_index(self) -> Index:
        try:
            index = msgspec.json.decode((self.folder / "index.json").read_bytes(), type=Index)
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            index = Index(path=str(self.path))
        whole = all((self.folder / name).exists() for name in index.parts)
        return index if index.version == VERSION and whole else Index(path=str(self.path))

    def _kept_steps(self) -> Described:
        if not self.index.parts:
            return {}
        found = steps_in(self.folder)
        if not found and not self.index.waiting:  # damaged: begin again
            self.index = Index(path=str(self.path))
        return found

    def _save_index(self, waiting: set[int]) -> None:
        self.index.waiting = sorted(waiting)
        write_whole(self.folder / "index.json", msgspec.json.encode(self.index))


class _Part:
    """Rows on their way into one file."""

    def __init__(self) -> None:
        self.rows: list[Rollout] = []
        self.dumps: list[int] = []
        self.columns: Columns | None = None


def _measure_packed(raw: bytes) -> Columns:
    return measure(msgspec.msgpack.decode(raw, type=list[Rollout]))


def _done(waiting: Any) -> Any:
    part, spans, future = waiting
    part.columns = future.result()
    return part, spans


def _processes() -> ProcessPoolExecutor:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    context = multiprocessing.get_context("spawn")  # threads of DuckDB do not outlive a fork
    return ProcessPoolExecutor(WORKERS, context)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One taking-in at a time in a cache folder; a second one waits."""
    try:
        import fcntl
    except ImportError:  # no such lock on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
