"""The given folders, and the runs that lie in them: searched for every few seconds, looked at by size and time of change."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from klinic.errors import KlinicError, UnreadableInput
from klinic.folders import run_folders
from klinic.rescue.ledger import NAME as LEDGER
from klinic.serve.confined import within
from klinic.trackers import Log
from klinic.watch.follow import GAPS, QUIET, Stamp, stamps

# All numbers here are our choice.
SCAN = 5.0  # seconds between two searches for new runs, and at least that many times what one takes
SCAN_SHARE = 20
LOOK = 0.5  # seconds between two looks at the files' sizes, and at least that many times the CPU time of one
LOOK_SHARE = 10


@dataclass
class Place:
    """One log, or the logs of one folder. stamp: of its files when last looked at; read: when last read.

    grown_at: when it last changed, seconds since 1970. gap: the longest pause between two changes. live: it has changed
    while it was looked at.
    """

    at: Path
    logs: list[Log]
    folder: bool
    stamp: Stamp = ()
    read: Stamp | None = None
    grown_at: float = 0.0
    gap: float = 0.0
    live: bool = False
    settled: bool = False
    rest_until: float = 0.0

    def look(self) -> None:
        """Note whether any file is another, longer or shorter, or newer than at the last look."""
        stamp = tuple(found for log in self.logs for found in stamps(log.path))
        if stamp == self.stamp:
            return
        now = time.time()
        if self.stamp:
            self.gap = max(self.gap, now - self.grown_at)
            self.live, self.settled = True, False
        self.grown_at = now if self.stamp else max((s[3] / 1e9 for s in stamp), default=now)
        self.stamp = stamp

    @property
    def quiet(self) -> bool:
        """Whether nothing more seems to come."""
        return time.time() - self.grown_at > max(QUIET, GAPS * self.gap)

    @property
    def due(self) -> bool:
        """Whether it should be read (again)."""
        changed = self.stamp != self.read or (self.live and self.quiet and not self.settled)
        return changed and bool(self.stamp) and time.monotonic() >= self.rest_until


@dataclass
class Found:
    """What a search has found: the logs of each place and whether it is a folder; seconds it took."""

    places: dict[Path, tuple[list[Log], bool]] = field(default_factory=dict)
    took: float = 0.0


@dataclass
class Places:
    """Every place under the given paths. Raises UnreadableInput where one of the paths does not exist."""

    given: Sequence[Path]
    roots: list[str] = field(default_factory=list)
    known: dict[Path, Place] = field(default_factory=dict)
    scan_at: float = 0.0
    look_at: float = 0.0

    def __post_init__(self) -> None:
        for path in self.given:
            if not path.exists():
                raise UnreadableInput(
                    "no such file or folder", str(path), "name a folder of logs, or one log"
                )
        self.roots = [os.path.realpath(path) for path in self.given]

    def search(self) -> Found:
        """Look for runs; nothing is changed, so another thread may do it."""
        began = time.monotonic()
        found = Found()
        for root in map(Path, self.roots):
            if root.is_dir():
                try:
                    for at, logs in run_folders(root).items():
                        inside = [
                            log
                            for log in logs
                            if log.path.name != LEDGER and within(log.path, self.roots)
                        ]
                        if inside:
                            found.places[at] = (inside, True)
                except KlinicError:  # an empty folder: its first run comes later
                    continue
            elif root.exists():
                found.places[root] = ([Log(root)], False)
        found.took = time.monotonic() - began
        return found

    def take(self, found: Found) -> list[Path]:
        """Know the runs that were found from now on; the places that are gone."""
        gone = [at for at in self.known if at not in found.places]
        for at in gone:
            del self.known[at]
        for at, (logs, folder) in found.places.items():
            if at in self.known:
                self.known[at].logs = logs
            else:
                self.known[at] = Place(at, logs, folder)
        self.scan_at = time.monotonic() + max(SCAN, SCAN_SHARE * found.took)
        return gone

    def look(self) -> None:
        """Look at every file's size and time, where it is time to; at those that grow every time."""
        began, busy = time.monotonic(), time.thread_time()
        everyone = began >= self.look_at
        for place in self.known.values():
            if everyone or (place.live and not place.quiet):
                place.look()
        if everyone:
            self.look_at = began + max(LOOK, LOOK_SHARE * (time.thread_time() - busy))

    def due(self) -> Iterator[Place]:
        """Those to be read: what grows first, then the newest."""
        yield from sorted(
            (place for place in self.known.values() if place.due),
            key=lambda place: (not place.live, -place.grown_at),
        )

    def named(self, path: str | Path) -> str:
        """A path as the pages show it: relative to the given folder that holds it."""
        return shown(path, self.roots)


def shown(path: str | Path, roots: Iterable[str]) -> str:
    """A path relative to the folder that holds it, with that folder's own name in front."""
    text = str(path)
    for root in roots:
        if text == root or text.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.join(os.path.basename(root), os.path.relpath(text, root)).removesuffix(
                "/."
            )
    return text
