"""Follow runs, diagnose them as they grow, and tell what is new: once, whatever is killed in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage, KlinicError
from klinic.run import Run
from klinic.watch import edetector
from klinic.watch.alert import alert
from klinic.watch.deliver import Courier, deliver_all
from klinic.watch.follow import Followed, Paths
from klinic.watch.monitor import EVERY, Monitor
from klinic.watch.state import Memory, home
from klinic.watch.targets import Target

# All numbers here are our choice.
INTERVAL = 5.0  # seconds between two readings of a run that grows
OLD = 3600.0  # seconds: runs of a folder that are older when first seen are shown, and stop nobody's trainer
TICK = 0.5  # seconds between two looks at the files' sizes


@dataclass
class Watched:
    """One run under watch. grown_at: when its files last changed, seconds since 1970."""

    monitor: Monitor
    run: Run
    grown_at: float

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The newest."""
        return self.monitor.diagnosis


@dataclass
class Watch:
    """Everything that is watched. on_alert: is given every alert, also where no target is named; its text is in ``lang``.

    every: steps between diagnoses. interval: seconds between readings. state: the database; one watch at a time may use it.
    options: as for :func:`klinic.read.read_all`. Raises BadUsage where the state is in use or cannot be written.
    """

    paths: Sequence[Path]
    targets: Sequence[Target] = ()
    on_alert: Callable[[dict[str, Any]], None] = lambda alert: None
    on_trouble: Callable[[str, str], None] = lambda where, what: None
    state: Path | None = None
    every: int = EVERY
    interval: float = INTERVAL
    alert_on: str = "act"
    cool_down: int | None = None
    lang: str = "en"
    options: dict[str, Any] = field(default_factory=dict)
    chosen: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, Watched] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(str(path) == "-" for path in self.paths):
            raise BadUsage(
                "standard input cannot be watched", "-", "name the file that the trainer writes"
            )
        self.followed = Paths(tuple(Path(path) for path in self.paths))
        place = self.state or home()
        self.memory = Memory(place)
        self.lock = _locked(place)
        self._couriers: list[Courier] = []

    def look(self, all_of_them: bool = False) -> list[Watched]:
        """Read what has changed and diagnose what is due; those that were read. all_of_them: without waiting for the interval."""
        self.followed.scan()
        seen = []
        for one in self.followed.changed(None if all_of_them else self.interval):
            for run in one.read(len(self.followed.known), **self.options):
                seen.append(self._look(one, run))
        return seen

    def _look(self, one: Followed, run: Run) -> Watched:
        key = f"{one.at.resolve()}:{run.name}"
        if key not in self.runs:
            more: dict[str, Any] = {}
            if self.cool_down is not None:
                more["cool_down"] = self.cool_down
            monitor = Monitor(
                self.memory.state(key), self.every, self.alert_on, **more, **self.chosen
            )
            self.runs[key] = Watched(monitor, run, one.grown_at)
        watched = self.runs[key]
        watched.run, watched.grown_at = run, one.grown_at
        before = watched.monitor.state.diagnosed
        changes = watched.monitor.look(run, settled=one.quiet)
        answer = watched.diagnosis
        alerts = [
            alert(change, answer, key, edetector.MEAN_STEPS, self.lang)
            for change in changes
            if answer is not None
        ]
        if before is None and len(self.followed.known) > 1 and time.time() - one.grown_at > OLD:
            self.memory.remember(key, watched.monitor.state, [], [])
            return watched
        # Steps in between are counted again after a restart, with the same outcome: no need to write them down.
        if alerts or watched.monitor.state.diagnosed != before:
            names = [target.name for target in self.targets]
            self.memory.remember(key, watched.monitor.state, alerts, names)
        for found in alerts:
            self.on_alert(found)
        return watched

    def once(self) -> None:
        """One look at everything, and one attempt to deliver what is due."""
        self.look(all_of_them=True)
        deliver_all(self.memory, self.targets, self.on_trouble)

    def run(
        self,
        ended: Callable[[], bool] = lambda: False,
        show: Callable[[Iterable[Watched]], None] | None = None,
    ) -> None:
        """Until ``ended`` says so. show: is given all runs after every look."""
        self._couriers = [
            Courier(target, self.memory.place, self.on_trouble) for target in self.targets
        ]
        for courier in self._couriers:
            courier.start()
        try:
            while not ended():
                self.look()
                if show is not None:
                    show(self.runs.values())
                time.sleep(TICK)
        finally:
            for courier in self._couriers:
                courier.ended.set()
            for courier in self._couriers:
                courier.join(timeout=2.0)

    def troubles(self) -> dict[Path, KlinicError]:
        """What cannot be read now, and folders that hold no log yet."""
        known = self.followed.known.values()
        return {
            **self.followed.troubles,
            **{one.at: one.trouble for one in known if one.trouble is not None},
        }

    def close(self) -> None:
        """Let go of the state."""
        self.memory.close()
        if self.lock is not None:
            self.lock.close()


def _locked(place: Path) -> Any:
    """One watch at a time uses a state; the lock is the system's and dies with the process. None where there are no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = place.with_name(f"{place.name}.lock").open("a")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise BadUsage(
            "another watch uses this state",
            str(place),
            "name another file with --state, or give both runs to one watch",
        ) from None
    return handle
