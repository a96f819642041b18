"""A file that holds rollouts, and a handful of the rollouts read from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from klinic.rollouts.rollout import Rollout

PRINTED = (".log", ".txt", ".out")  # logs into which a script prints samples of its own choice
BATCH_ROWS = 4096
BATCH_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Dump:
    """A file of rollouts.

    layout: the module of ``klinic.rollouts.formats`` that reads it. trainer: "" where nothing says who wrote it. step: of every
    row, from the file's or folder's name; None where the rows say it. split: "train" or "eval".
    """

    path: Path
    layout: str
    trainer: str = ""
    step: int | None = None
    split: str = "train"


def are_picked(dumps: Iterable[str]) -> bool:
    """Whether all samples were printed into logs: somebody's choice, whose means say nothing of the batch."""
    return all(dump.lower().endswith(PRINTED) for dump in dumps)


@dataclass(slots=True)
class Batch:
    """Rows read in one go.

    until: where to go on: the byte after the last row of a file of lines, 1 when a whole file was taken. skipped: rows that
    could not be understood.
    """

    rows: list[Rollout] = field(default_factory=list)
    until: int = 0
    skipped: int = 0
