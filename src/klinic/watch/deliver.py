"""Sends what is due to each target, one thread a target: a slow service holds up neither the others nor the watching."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from klinic.watch.state import Memory
from klinic.watch.targets import Target, Untaken

POLL = 0.5  # seconds between two looks for due alerts (our choice)


class Courier(threading.Thread):
    """Delivers to one target until it is told to stop."""

    def __init__(self, target: Target, place: Path, tell: Callable[[str, str], None]) -> None:
        super().__init__(name=f"klinic {target.name}", daemon=True)
        self.target, self.place, self.tell = target, place, tell
        self.ended = threading.Event()

    def run(self) -> None:
        """Until ``ended`` is set."""
        memory = Memory(self.place)
        try:
            while not self.ended.is_set():
                if not _deliver(memory, self.target, self.tell):
                    self.ended.wait(POLL)
        finally:
            memory.close()


def _deliver(memory: Memory, target: Target, tell: Callable[[str, str], None]) -> bool:
    """Deliver one alert; False where none is due."""
    due = memory.due(target.name)
    if due is None:
        return False
    number, alert, tried = due
    try:
        target.take(alert)
    except Untaken as trouble:
        memory.failed(number, target.name, tried, str(trouble))
        tell(target.name, str(trouble))
        return False
    except Exception as trouble:  # a service's library may raise anything
        memory.failed(number, target.name, tried, f"{type(trouble).__name__}: {trouble}")
        tell(target.name, f"{type(trouble).__name__}: {trouble}")
        return False
    memory.delivered(number, target.name)
    return True


def deliver_all(
    memory: Memory, targets: Sequence[Target], tell: Callable[[str, str], None]
) -> None:
    """Everything that is due now, in this thread."""
    for target in targets:
        while _deliver(memory, target, tell):
            pass
