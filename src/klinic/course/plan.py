"""The order of the exercises, and which comes next."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from klinic.course.scenes import specs

PARTS = ("curves", "failures", "lab")
ONCE = ("read", "quiz")  # asked in round one only


@dataclass(frozen=True, slots=True)
class Task:
    """One exercise: ``pair-2`` is kind "pair", number "2"."""

    id: str
    part: str
    logs: tuple[str, ...]

    @property
    def kind(self) -> str:
        """read, pair, scene, quiz or lab."""
        return self.id.partition("-")[0]

    @property
    def number(self) -> str:
        """Its number within the kind, empty if it is the only one."""
        return self.id.partition("-")[2]

    @property
    def typed(self) -> str:
        """How the learner goes there."""
        return self.id.replace("-", " ")


@cache
def tasks(turn: int = 1) -> tuple[Task, ...]:
    """The tasks of a round, in order."""
    every = [
        Task(entry["id"], entry["part"], tuple(entry.get("logs", ()))) for entry in specs()["task"]
    ]
    return tuple(task for task in every if turn == 1 or task.kind not in ONCE)


def ids() -> list[str]:
    """Names of all tasks."""
    return [task.id for task in tasks(1)]


def task(name: str) -> Task:
    """A task by its name."""
    return next(one for one in tasks(1) if one.id == name)


def following(turn: int, at: str, done: dict[str, bool]) -> Task | None:
    """The next task of the round that is not done, looking on from ``at`` and then from the start."""
    order = tasks(turn)
    names = [one.id for one in order]
    begin = names.index(at) + 1 if at in names else 0
    for one in (*order[begin:], *order[:begin]):
        if not done.get(f"{turn}/{one.id}") and one.id != at:
            return one
    return None
