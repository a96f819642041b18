"""Which runs lie under the paths that are watched, and which of them have changed since they were last read.

A run is read whole, by the same readers as ever: whatever their format, rotation, truncation, requeued jobs and half-written last
lines mean the same here as there. Long logs are therefore looked at less often: see ``Followed.rest``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klinic.errors import KlinicError
from klinic.folders import run_folders
from klinic.read import read_all
from klinic.run import Run

# All numbers here are our choice.
SCAN = 10.0  # seconds between two looks for new runs in a folder
# Of the time between two readings, which a reading may take: the rest is left to others.
SHARE = 0.2
# Seconds, and longest pauses so far, without a new line until a run seems to have ended.
QUIET, GAPS = 600.0, 10

NEVER_WAIT = getattr(os, "O_NONBLOCK", 0)  # a named pipe would wait for its writer
Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass
class Followed:
    """One file, or the files of one run's folder. rest: seconds to leave it alone after a reading, by what that took.

    grown_at: when it last changed, seconds since 1970. gap: the longest pause between two changes. ended: it was read as ended.
    """

    at: Path
    files: list[Path]
    stamp: Stamp = ()
    read_at: float = 0.0
    rest: float = 0.0
    trouble: KlinicError | None = None
    grown_at: float = field(default_factory=time.time)
    gap: float = 0.0
    ended: bool = False

    def changed(self) -> bool:
        """Whether any file is another, longer or shorter than at the last look, or newer."""
        stamp = tuple(found for path in self.files for found in stamps(path))
        if stamp == self.stamp:
            return False
        now = time.time()
        if self.stamp:
            self.gap = max(self.gap, now - self.grown_at)
        self.grown_at = now if self.stamp else max((s[3] / 1e9 for s in stamp), default=now)
        self.stamp, self.ended = stamp, False
        return True

    @property
    def quiet(self) -> bool:
        """Whether nothing more seems to come."""
        return time.time() - self.grown_at > max(QUIET, GAPS * self.gap)

    def read(self, runs: int = 1, **options: Any) -> list[Run]:
        """The runs in it, none where it cannot be read now (``trouble`` says why). runs: how many are watched in all."""
        began = time.process_time()
        try:
            found = [run for run in read_all(self.at, **options) if self._own(run)]
            self.trouble = None
        except KlinicError as trouble:
            self.trouble, found = trouble, []
        self.read_at = time.monotonic()
        self.rest = (time.process_time() - began) * runs / SHARE
        return found

    def _own(self, run: Run) -> bool:
        """A folder below is followed for itself."""
        if not self.at.is_dir() or len(self.files) == 0:
            return True
        own = {str(path) for path in self.files}
        return any(source in own or str(self.at) == source for source in run.sources)


def stamps(path: Path) -> Iterator[tuple[str, int, int, int]]:
    """(path, inode, bytes, time of the last change) of a file, of what SQLite writes beside it, and of all files in a folder."""
    if path.is_dir():  # a tracker's folder of one run, whose files grow
        for folder, _, names in os.walk(path):
            for name in names:
                yield from stamps(Path(folder, name))
        return
    for file in (str(path), f"{path}-wal"):
        try:
            # Opening asks an NFS server anew; a bare stat may answer from a cache that is a minute old.
            handle = os.open(file, os.O_RDONLY | NEVER_WAIT)
        except OSError:
            continue
        try:
            stat = os.fstat(handle)
            yield file, stat.st_ino, stat.st_size, stat.st_mtime_ns
        finally:
            os.close(handle)


class Paths:
    """Everything that is watched. Paths that do not exist yet are waited for."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths
        self.known: dict[Path, Followed] = {}
        self.scanned: float | None = None
        self.missing: list[Path] = []
        self.troubles: Mapping[Path, KlinicError] = {}

    def scan(self) -> None:
        """Look for runs that are new, or gone."""
        now = time.monotonic()
        come = any(path.exists() for path in self.missing)
        if self.scanned is not None and now - self.scanned < SCAN and not come:
            return
        self.scanned = now
        found: dict[Path, list[Path]] = {}
        self.missing = [path for path in self.paths if not path.exists()]
        troubles = {}
        for path in self.paths:
            if path.is_dir():
                try:
                    for folder, logs in run_folders(path).items():
                        found[folder] = [log.path for log in logs]
                except KlinicError as trouble:  # an empty folder: its run starts later
                    troubles[path] = trouble
            elif path.exists():
                found[path] = [path]
        self.troubles = troubles
        for at in self.known.keys() - found.keys():
            del self.known[at]
        for at, files in found.items():
            if at in self.known:
                self.known[at].files = files
            else:
                self.known[at] = Followed(at, files)

    def changed(self, interval: float | None) -> Iterator[Followed]:
        """Those that have changed and were left alone long enough; None: all that have changed."""
        for one in list(self.known.values()):
            rested = time.monotonic() - one.read_at
            if interval is None or one.read_at == 0 or rested >= max(interval, one.rest):
                again = one.trouble is not None and rested >= SCAN
                if one.changed() or again or (one.quiet and not one.ended):
                    one.ended = one.quiet
                    yield one
