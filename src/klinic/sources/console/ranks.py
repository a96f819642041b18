"""Rows that every process of a job prints: which process a line is of, and the mean over them.

``torchrun`` writes ``[rank3]:`` or ``[default3]:`` before a line, ``mpirun --tag-output`` ``[1,3]<stdout>:``, ``srun -l``
``3:``. Each process goes through the steps at its own pace, so their rows are kept apart until the log ends.
"""

from __future__ import annotations

import re

from klinic.sources.rows import Reading

_RANK = re.compile(
    r"^\s*(?:\[(?:rank|default)(?P<torch>\d+)\]:?|\[\d+,(?P<mpi>\d+)\]<\w+>:)\s?", re.IGNORECASE
)
_SRUN = re.compile(r"^ *(?P<srun>\d{1,4}): ?")
# Our choices: enough to tell a label that repeats from steps that count up.
SRUN_LINES = 20  # labelled lines at the head of a log before a bare number counts as a process
SRUN_SHARE = 0.9  # of the lines at its head: srun labels every one


def labelled_by_srun(head: str) -> bool:
    """Whether the lines of a log begin with the number of their task; a log that begins them with steps counts up."""
    found = [_SRUN.match(line) for line in head.splitlines()[:1000] if line.strip()]
    labels = [int(match["srun"]) for match in found if match is not None]
    return (
        len(labels) >= SRUN_LINES
        and len(labels) >= SRUN_SHARE * len(found)
        and len(set(labels)) <= len(labels) // 4
        and min(labels) == 0
    )


class Ranks:
    """The readings of a console log's processes; "" is that of lines which name none."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.by_rank: dict[str, Reading] = {}
        self._srun = labelled_by_srun(reading.head)

    def split(self, text: str) -> tuple[str, str]:
        """The process of a line, "" if it names none, and the line without that."""
        if text[:1] == "[" and (found := _RANK.match(text)) is not None:
            return found["torch"] or found["mpi"], text[found.end() :]
        if self._srun and (found := _SRUN.match(text)) is not None:
            return found["srun"], text[found.end() :]
        return "", text

    def of(self, rank: str) -> Reading:
        """Where the rows of a process go."""
        if not rank:
            return self.reading
        if rank not in self.by_rank:
            self.by_rank[rank] = Reading(self.reading.at, self.reading.vocabulary)
        return self.by_rank[rank]

    def reached(self, step: int) -> None:
        """Tell the log's own reading how far the run is: what is noted of it then carries the step."""
        if self.by_rank and not self.reading.columns:
            self.reading.last_step = max(step, self.reading.last_step or 0)

    @property
    def logged(self) -> int:
        """Rows with a step of the process that printed most of them."""
        return max([self.reading.logged, *(reading.logged for reading in self.by_rank.values())])

    def together(self) -> None:
        """Put the processes' rows into the reading; rows of one step are averaged later, as all are."""
        readings = sorted(self.by_rank.values(), key=lambda reading: -reading.logged)
        for i, reading in enumerate(readings):
            if i == 0 and not self.reading.columns:
                self.reading.last_step = None
                self.reading.go_on(reading)
                continue
            for key, column in reading.columns.items():
                self.reading.put(key, column.steps, column.values)
