"""The thread that keeps the board true: it finds runs, sees what has changed, and has one process read and judge it."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from klinic.errors import KlinicError
from klinic.serve import examine
from klinic.serve.board import Board
from klinic.serve.places import Found, Place, Places
from klinic.serve.store import Store

# All numbers here are our choice.
TICK = 0.25  # seconds between two rounds that find nothing to do
AGAIN = 5.0  # seconds after a round that failed
SHARE = 0.7  # of the process time that runs which grow may take; the rest is for those not read yet


class Work(threading.Thread):
    """Everything in the background. options: mapping and trainer, as for :func:`klinic.read.read_all`."""

    def __init__(self, places: Places, board: Board, state: Path, options: dict[str, Any]) -> None:
        super().__init__(name="klinic-serve", daemon=True)
        self.places, self.board, self.state, self.options = places, board, state, options
        self.ended = threading.Event()
        self.scanned = threading.Event()
        self.pools: dict[str, ProcessPoolExecutor] = {}
        self.taking: dict[str, Future[Any]] = {}  # place -> its samples being taken in
        self._pool_lock = threading.Lock()
        self._searcher = ThreadPoolExecutor(1, "klinic-serve-search")
        self._search: Future[Found] | None = None

    def run(self) -> None:
        """Until :meth:`stop`."""
        store = Store(self.state)
        try:
            while not self.ended.is_set():
                try:
                    busy = self._round(store)
                except Exception:  # a full disk, say: the pages go on with what is known
                    traceback.print_exc()
                    self.ended.wait(AGAIN)
                    continue
                if not busy:
                    self.ended.wait(TICK)
        finally:
            self._searcher.shutdown(wait=False)
            store.close()

    def stop(self) -> None:
        """End the thread and its processes."""
        self.ended.set()
        with self._pool_lock:
            pools, self.pools = list(self.pools.values()), {}
        for pool in pools:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(cancel_futures=True)

    def ask(self, job: Callable[..., Any], *given: Any, aside: bool = False) -> Future[Any]:
        """A job for the process, done before the next run is read. aside: for a second one, so that no run waits for it."""
        name = "aside" if aside else "runs"
        with self._pool_lock:
            if self.ended.is_set():
                raise RuntimeError("the server ends")
            try:
                return self._pool(name).submit(job, *given)
            except BrokenProcessPool:  # killed over an earlier job
                del self.pools[name]
                return self._pool(name).submit(job, *given)

    def _pool(self, name: str) -> ProcessPoolExecutor:
        if name not in self.pools:
            self.pools[name] = ProcessPoolExecutor(
                1,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=examine.begin,
                initargs=(
                    self.places.roots,
                    str(self.state),
                    self.options["mapping"],
                    self.options["trainer"],
                ),
            )
        return self.pools[name]

    async def answer(self, job: Callable[..., Any], *given: Any, aside: bool = False) -> Any:
        """The same for a page. Raises KlinicError where the process was killed over it."""
        try:
            return await asyncio.wrap_future(self.ask(job, *given, aside=aside))
        except BrokenProcessPool:
            raise KlinicError(
                "the process that read it was killed", "", "is there enough memory?"
            ) from None

    def place_of(self, row: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bool] | None:
        """Where a run is read from, as the process takes it; None where it is gone."""
        place = self.places.known.get(Path(row["place"]))
        return None if place is None else _given(place)

    def _round(self, store: Store) -> bool:
        """One round; whether a run was read."""
        if self._search is None and time.monotonic() >= self.places.scan_at:
            self._search = self._searcher.submit(self.places.search)
            if not self.scanned.is_set():
                self._search.exception()  # the first one is waited for
        if self._search is not None and self._search.done():
            search, self._search = self._search, None
            for at in self.places.take(search.result()):
                self.board.put(str(at), [])
            self._recall(store)
        self.places.look()
        self.scanned.set()
        due = list(self.places.due())
        waiting = sum(place.read is None for place in due)
        if waiting != self.board.waiting:
            self.board.waiting = waiting
            self.board.tell(())
        if not due:
            return False
        self._read(due[0], store)
        return True

    def _recall(self, store: Store) -> None:
        """Show what an earlier start has worked out of files that are still the same."""
        new = [place for place in self.places.known.values() if place.read is None]
        if not new:
            return
        for place in new:
            place.look()
        known = store.rows_of(str(place.at) for place in new)
        for place in new:
            stamp, rows = known.get(str(place.at), ("", []))
            if rows and stamp == self._stamp(place):
                place.read, place.settled = place.stamp, True
            if rows:  # an older state is better than none, until it is read
                self.board.put(str(place.at), rows)

    def _stamp(self, place: Place) -> str:
        return examine.stamp_text(place.stamp, self.options)

    def _read(self, place: Place, store: Store) -> None:
        began, stamp = time.monotonic(), place.stamp
        quiet = place.quiet
        try:
            rows = self.ask(
                examine.examine,
                *_given(place),
                self._stamp(place),
                place.grown_at,
                quiet,
                place.live,
            ).result()
        except (BrokenProcessPool, RuntimeError):
            if self.ended.is_set():
                return
            told = KlinicError(
                "the process that read it was killed", str(place.at), "is there enough memory?"
            )
            rows = [examine.unreadable(str(place.at), told, place.grown_at)]
        place.read, place.settled = stamp, quiet
        growing = sum(other.live and not other.quiet for other in self.places.known.values())
        took = time.monotonic() - began
        place.rest_until = time.monotonic() + took * max(1, growing) * (
            1 / SHARE - 1 if growing < 2 else 1 / SHARE
        )
        self.board.put(str(place.at), rows)


def _given(place: Place) -> tuple[str, list[tuple[str, str]], bool]:
    return str(place.at), [(str(log.path), log.group) for log in place.logs], place.folder
