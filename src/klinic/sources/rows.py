"""The one thing every source produces: rows of numbers by step, and what stood around them."""

from __future__ import annotations

import math
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from klinic.run import Event, Segment

STEP_KEYS = (
    "step",
    "global_step",
    "training/global_step",
    "train/global_step",
    "_step",
    "steps",
    "iteration",
    "iter",
    "update",
    "global_step/max_steps",
    "trainer/global_step",
    "training_step",
    "current_steps",
    "system/step",
    "progress/batch",
    "rollout/step",
    "train/step",
)
ID_CHARS = 8  # of a run's number, where several runs of one file have one name

RANKS_APART = 2  # steps that a process may be ahead of another: every update waits for all
RANKS_SEEN = 64  # points looked back at: some steps of some processes (our choice)
HEAD_CHARS = 200_000  # enough of a log to recognise its trainer by words
EVENTS_KEPT = 100  # of each kind: the first say how it began, as many of the last how it ended


class Column:
    """Values of one key, in the order of the log: steps and values grow together, 16 bytes a point."""

    __slots__ = ("steps", "values")

    def __init__(self) -> None:
        self.steps, self.values = array("q"), array("d")

    def late_rank(self, step: int) -> bool:
        """Whether a row of an earlier step is that of a slower process: all print their own, and one is still missing."""
        last, earlier = self.steps[-1], [at for at in self.steps[-RANKS_SEEN:] if at != step]
        each = Counter(earlier)
        each.pop(last, None)  # the others have not all come to it
        return (
            max(each.values(), default=0) > 1
            and last - step <= RANKS_APART
            and self.steps[-RANKS_SEEN:].count(step) < max(each.values())
        )

    def cut(self, step: int) -> None:
        """Forget every point at or after ``step``; the restarted run writes them again."""
        keep = len(self.steps)
        while keep and self.steps[keep - 1] >= step:
            keep -= 1
        del self.steps[keep:], self.values[keep:]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """knows: whether a key is a metric of any trainer. summary: keys that mark an end-of-run summary row.

    lists: whether a list of numbers under this key is one metric in parts ("entropy_by_position/0" and on); other lists
    are samples, not metrics.
    """

    knows: Callable[[str], bool] = lambda key: True
    summary: frozenset[str] = frozenset()
    lists: Callable[[str], bool] = lambda key: False


class Reading:
    """What one file gave: columns by the log's own key, configuration, events, and counts of what it holds.

    Rows arrive in the order of the log. A step that goes back, for a key already seen at a later step, is a
    restart: the rows from that step on are the newer ones, the older ones are dropped and the segment is kept. Where every
    process prints its own row of each step, they may come a little out of order; that restarts nothing.
    vocabulary: free text is full of other numbers, so a console row counts only if it holds a known key.
    """

    def __init__(self, at: str, vocabulary: Vocabulary | None = None) -> None:
        self.at = at
        self.name = ""  # as the tracker calls the run; "" where the file does not say
        self.vocabulary = vocabulary if vocabulary is not None else Vocabulary()
        self.unknown: Counter[str] = Counter()
        self.columns: dict[str, Column] = {}
        self.config: dict[str, tuple[Any, str]] = {}
        self.defined: dict[
            str, tuple[str, str]
        ] = {}  # own name -> definition and unit, as the log itself says
        self._events: dict[str, tuple[list[Event], deque[Event]]] = {}
        self.holds: Counter[str] = Counter()
        self.segments: list[Segment] = []
        self.head = ""
        self.rollouts = False
        self.last_step: int | None = None
        self.logged = 0
        self.superseded = 0
        # Or the log carries no step, and its rows were "counted", or "placed" by the progress bar or the logging interval.
        self.numbered = "logged"
        self.parts: dict[str, Reading] = {}  # of a file that holds several runs: each by its name
        self._first: int | None = None
        self._rewound: int | None = None

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add one row. Values may be NaN or infinite."""
        if not values:
            return
        if self.last_step is not None and step < self.last_step:
            behind = [key for key in values if self._latest(key) > step]
            if behind and not self.columns[behind[0]].late_rank(step):
                self._restart(step)
        for key, value in values.items():
            column = self.columns.get(key)
            if column is None:
                column = self.columns[key] = Column()
            column.steps.append(step)
            column.values.append(value)
        if step != self.last_step:
            self.logged += 1
        if self._first is None:
            self._first = step
        self.last_step = step if self.last_step is None else max(step, self.last_step)

    def add_columns(self, columns: Mapping[str, tuple[array[int], array[float]]]) -> None:
        """Add whole columns to a reading that is still empty; none of their steps goes back."""
        for key, (steps, values) in columns.items():
            column = self.columns[key] = Column()
            column.steps, column.values = steps, values
        seen: set[int] = set().union(*(steps for steps, _ in columns.values()))
        if seen:
            self._first, self.last_step, self.logged = min(seen), max(seen), len(seen)

    def forget_last(self, key: str) -> None:
        """Drop the newest point of a key: it stood at the very end of a log whose last line does not end."""
        column = self.columns[key]
        del column.steps[-1:], column.values[-1:]
        if not column.steps:
            del self.columns[key]

    def part(self, run: str) -> Reading:
        """The reading of one of several runs that this file holds."""
        if run not in self.parts:
            self.parts[run] = Reading(self.at, self.vocabulary)
        return self.parts[run]

    def put(self, key: str, steps: Iterable[int], values: Iterable[float]) -> None:
        """Add points of a key whose steps are no clock of the run: they restart nothing and count no row."""
        column = self.columns.setdefault(key, Column())
        column.steps.extend(steps)
        column.values.extend(values)

    def _latest(self, key: str) -> int:
        column = self.columns.get(key)
        return column.steps[-1] if column is not None and len(column.steps) else -1

    def _restart(self, step: int) -> None:
        assert self._first is not None and self.last_step is not None
        self.segments.append(Segment(self._first, self.last_step, self._rewound))
        self._cut(step)
        self._first, self._rewound, self.last_step = step, step, None

    def _cut(self, step: int) -> None:
        kept = 0
        for column in self.columns.values():
            column.cut(step)
            kept = max(kept, len(column.steps))
        self.superseded += self.logged - kept
        self.logged = kept

    @property
    def first_step(self) -> int | None:
        """The first step of all segments."""
        return self.segments[0].first if self.segments else self._first

    def go_on(self, later: Reading) -> None:
        """Add the rows of the log in which the run went on: from its first step on they are the newer ones."""
        begins = later.first_step
        if begins is None:
            return
        if self.last_step is not None and begins <= self.last_step:
            self._restart(begins)
        elif self.last_step is not None:
            self.segments.append(Segment(self._first or 0, self.last_step, self._rewound))
            self._first, self._rewound = begins, None
        back = [s.rewound_to for s in later.closed_segments() if s.rewound_to is not None]
        if (
            min(back, default=begins) < begins
        ):  # a restart within it went back behind its own beginning
            self._cut(min(back))
        for key, column in later.columns.items():
            self.put(key, column.steps, column.values)
        opened = later.closed_segments()
        if self._rewound is not None and opened:
            opened = (Segment(opened[0].first, opened[0].last, self._rewound), *opened[1:])
        self.segments += opened[:-1]
        self._first, self.last_step, self._rewound = (
            opened[-1].first,
            opened[-1].last,
            opened[-1].rewound_to,
        )
        self.logged += later.logged
        self.superseded += later.superseded
        for key, found in later.config.items():
            self.config.setdefault(key, found)
        self.defined |= later.defined
        for event in later.events:
            self._keep(event)
        self.holds += later.holds
        self.unknown += later.unknown

    def closed_segments(self) -> tuple[Segment, ...]:
        """All segments, the running one last."""
        if self._first is None or self.last_step is None:
            return tuple(self.segments)
        return (*self.segments, Segment(self._first, self.last_step, self._rewound))

    def note(self, kind: str, at: str, lines: tuple[str, ...], since: int | None = None) -> None:
        """Keep an event: of each kind the first and the last ones. since: the last step when it began, if not now."""
        self._keep(Event(kind, at, self.last_step if since is None else since, lines))
        self.holds[kind] += 1

    def _keep(self, event: Event) -> None:
        first, last = self._events.setdefault(event.kind, ([], deque(maxlen=EVENTS_KEPT)))
        (first if len(first) < EVENTS_KEPT else last).append(event)

    @property
    def events(self) -> list[Event]:
        """What was noted, kind by kind, each in the order of the log."""
        return [event for first, last in self._events.values() for event in (*first, *last)]


def number(value: Any) -> float | None:
    """A float where ``value`` is one or spells one ("0.03", "21.1%", "nan"), else None."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        text = value.strip()
        if not text or len(text) > 40:
            return None
        try:
            return float(text[:-1]) / 100 if text[-1] == "%" else float(text)
        except ValueError:
            return None
    return None


def flatten(row: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of a nested mapping as ("a/b", value); lists and texts are passed on as they are."""
    for key, value in row.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def numbers(
    row: Mapping[str, Any], lists: Callable[[str], bool] = lambda key: False
) -> dict[str, float]:
    """The numeric leaves of a row; null, text and lists are left out (not computed is not zero).

    lists: the keys whose lists of numbers are kept, as "key/0", "key/1" and on.
    """
    kept: dict[str, float] = {}
    for key, value in row.items():
        kind = type(value)
        if kind is float or kind is int:
            kept[key] = value
        elif kind is dict:
            for leaf, inner in flatten(value, f"{key}/"):
                if (found := number(inner)) is not None:
                    kept[leaf] = found
        elif kind is str and (found := number(value)) is not None:
            kept[key] = found
        elif kind is list and lists(key):
            for i, inner in enumerate(value):
                if (found := number(inner)) is not None:
                    kept[f"{key}/{i}"] = found
    return kept


def step_of(values: Mapping[str, Any]) -> int | None:
    """The row's own step, by the usual names ("5/100" counts); None where it carries none."""
    for key in STEP_KEYS:
        if key in values:
            found = values[key]
            if isinstance(found, str):
                found = number(found.partition("/")[0])
            if (
                isinstance(found, int | float)
                and not isinstance(found, bool)
                and math.isfinite(found)
            ):
                return int(found)
    return None


def told_apart(runs: dict[str, str]) -> dict[str, str]:
    """Run -> a name that no other has: its own, else with the beginning of its number."""
    names = Counter(runs.values())
    short = Counter(run[:ID_CHARS] for run in runs)
    return {
        run: name
        if name and names[name] == 1
        else f"{name} ({run[:ID_CHARS] if short[run[:ID_CHARS]] == 1 else run})".lstrip()
        for run, name in runs.items()
    }
