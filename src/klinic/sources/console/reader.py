"""A console log: rows in any of the line grammars, between progress bars, prefixes, configuration and tracebacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from klinic.sources.console.blocks import Blocks
from klinic.sources.console.crash import Crashes
from klinic.sources.console.ranks import Ranks
from klinic.sources.console.signs import WORDS
from klinic.sources.console.skim import Skim, long_log
from klinic.sources.grammar import Row, grammars
from klinic.sources.grammar.dicts import literal
from klinic.sources.lines import Ending, lines
from klinic.sources.rows import Reading, flatten, number

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07")
_RAY = re.compile(r"^\s*\((?:[\w.:]+ )?(?:pid|ip)=[^)]*\)\s?")
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
_BAR = re.compile(r"^(?P<name>[^%|]{0,60}?)\s*\d+%\|[^|]*\|\s*(?P<at>\d+)/(?P<of>\d+) \[")
_TABLE_CELL = re.compile(r"\s*\|\s*|\t+|\s{2,}")
_ARGUMENTS = re.compile(
    r"^\W*(?:\w*(?:Config|Arguments|Args)|Namespace)\($|^\W*(?:\w*(?:Config|Arguments|Args)|Namespace)\((?=\w+=)"
)
_ARGUMENT = re.compile(r"(\w+)=('[^']*'|\"[^\"]*\"|\[[^\]]*\]|\{[^}]*\}|<[^>]*>|[^,\s()]+)")
_OVERRIDE = re.compile(
    r"(?<![\w.])\+{0,2}([a-z_]\w*(?:\.\w+)+)=('[^']*'|\"[^\"]*\"|\[[^\]]*\]|[^\s,;\\]+)"
)
_FLAG = re.compile(r"(?<!\S)--([a-z][\w-]*)(?:=|\s+)('[^']*'|\"[^\"]*\"|(?!--)[^\s\\]+)")
_VERIFIER = re.compile(
    r"Failed to parse (?:gold|answer|prediction)|(?:reward|verif\w+|grader|sandbox)\b.*\b(?:timed? ?out|exception|error)\b(?!\s*[:=]?\s*[\d.]+\s*(?:%|\||,|$))",
    re.IGNORECASE,
)
_NEGATIVE_KL = re.compile(r"KL divergence is starting to become negative: (-[\d.]+)")
_NOT_FINITE = re.compile(
    r"grad_norm is not finite|non-finite (?:loss|grad)|loss is (?:nan|inf)", re.IGNORECASE
)
# Nearly all lines of a log say nothing of the kind, and this is asked of every one: the words without which no pattern
# can match (lower case), none of which holds another.
_ALARMING = (
    *WORDS,
    "traceback",
    'file "',
    "ray::",
    "kl divergence is",
    "failed to parse",
    "time",
    "exception",
    "error",
    "finite",
    "loss is",
)
_ALARMING = tuple(word for word in _ALARMING if not any(o != word and o in word for o in _ALARMING))
_OF_BLOCKS = ("step", "poch", "╭", "avg_raw_reward")
# What every row without a dictionary carries: no grammar of klinic.sources.grammar can match without it.
_STEPPED = re.compile(r"(?:step|iter(?:ation)?|update)[\s=:#|\[]*\d")
UNKNOWN_KEPT = 200
MAIN_KIND = 5  # rows without a step are taken only where they are this many times the others
LAG_STEPS = 3  # a drawn bar may be this far behind
WRAP_LIMIT = 400  # lines a wrapped row or a printed dictionary may take


class Console:
    """Reads one console log; holds what spans several lines."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.bar: tuple[int, int] | None = None
        self.reached: dict[int, int] = {}  # total of a bar -> how far it came
        self.stepless: list[tuple[Row, tuple[int, int] | None, str]] = []
        self.header: list[str] | None = None
        self.crashes = Crashes(reading)
        self.ranks = Ranks(reading)
        self.rank = ""
        self.newest: tuple[Reading, str] | None = None  # where the line's last number went
        self.blocks = Blocks()
        self.pending: list[str] = []  # an open dictionary or argument list
        self.depth = 0

    def read(self, stream: BinaryIO, head: bytes) -> None:
        """Read to the end."""
        last = 0
        size = long_log(stream, head)
        ending = Ending()
        source = (
            lines(stream, head, ending)
            if size is None
            else Skim(stream, head, size, self.reading, ending).lines()
        )
        for at, text, alarming in self._joined(source):
            if at != last:
                self.reading.holds["lines"] += 1
                last = at
            if text is None:
                self.reading.holds["overlong lines"] += 1
                continue
            self.newest = None
            self._line(at, text, alarming)
        if not ending.ended and self.newest is not None:
            reading, key = self.newest
            reading.forget_last(key)
        self.crashes.end()
        self._place_stepless()
        self.ranks.together()

    def _joined(
        self, source: Iterator[tuple[int, str | None]]
    ) -> Iterator[tuple[int, str | None, bool]]:
        """Clean every line, and join a verl row that the terminal wrapped; with each, whether it may carry a warning."""
        held: tuple[int, str] | None = None
        wrapped = 0
        for at, raw in source:
            if raw is None:
                yield at, None, False
                continue
            plain = _ANSI.sub("", raw) if "\x1b" in raw else raw
            text = _RAY.sub("", plain, count=1) if "(" in plain[:4] else plain
            if "[repeated " in text:
                text = _REPEATED.sub("", text)
            if held is not None:
                if wrapped < WRAP_LIMIT and _continues(held[1], text):
                    glue = "" if not (held[1].endswith(" -") or text.startswith("- ")) else " "
                    held, wrapped = (held[0], held[1] + glue + text), wrapped + 1
                    continue
                yield *held, False
                held = None
            if "step:" in text and " - " in text:
                held, wrapped = (at, text), 0
                continue
            alarming = _alarming(text.lower())
            if (alarming or self.crashes.open) and self.crashes.take(at, plain):
                self.reading.holds["lines"] += 1
                continue
            yield at, text, alarming
        if held is not None:
            yield *held, False

    def _line(self, at: int, text: str, alarming: bool) -> None:
        self.rank, text = self.ranks.split(text)
        if self.pending:
            self._more(at, text)
            return
        stripped = text.strip()
        if not stripped:
            self.header = None
            return
        if alarming and self._said(at, text, stripped):
            return
        low = stripped.lower()
        if self.blocks.open or any(word in low for word in _OF_BLOCKS):
            block = self.blocks.take(text)
            if not isinstance(block, bool):
                self._row(block)
                return
            if block:
                return
        bar = _BAR.match(stripped) if "%|" in stripped else None
        if bar:
            self.reading.holds["progress bars"] += 1
            # Bars with a name are loading, mapping or evaluation; the training bar has none.
            if not bar["name"].strip(" :"):
                self.bar = int(bar["at"]), int(bar["of"])
                self.reached[self.bar[1]] = max(self.reached.get(self.bar[1], 0), self.bar[0])
            if "{" not in stripped and "=" not in stripped.partition("]")[2]:
                return
        if self._table(stripped, low):
            return
        if low[0] == "[" or "{" in low or _STEPPED.search(low) is not None:
            row = next(
                (row for grammar in grammars() if (row := grammar.parse(text)) is not None), None
            )
            if row is not None:
                self._row(self.blocks.place(text, row))
                return
        if low[0] in "{(" or "=" in low or "--" in low or "(" in low:
            self._configuration(at, stripped)

    def _row(self, row: Row) -> None:
        words = self.reading.vocabulary
        if not words.summary.isdisjoint(row.values):
            return
        if not any(words.knows(key) for key in row.values):
            self.reading.holds["rows of other numbers"] += 1
            if len(self.reading.unknown) < UNKNOWN_KEPT:
                self.reading.unknown.update(row.values.keys())
            return
        self.reading.holds["rows"] += 1
        self.crashes.went_on()
        if row.step is None:
            self.stepless.append((row, self.bar, self.rank))
        else:
            reading = self.ranks.of(self.rank)
            values = {key: value for key, value in row.values.items() if key != "step"}
            reading.add(row.step, values)
            if values and not row.leaves:  # a dictionary is only read where it is closed
                self.newest = reading, next(reversed(values))
            self.ranks.reached(row.step)

    def _place_stepless(self) -> None:
        """Give rows without a step their place: from the spacing of the training bar beside them, else by counting.

        Where both kinds exist and the rows with a step are the many, the others stand in the log for something else.
        """
        if not self.stepless or self.ranks.logged > len(self.stepless) / MAIN_KIND:
            return
        order: list[int] = []
        reached: dict[str, int] = {}  # of each process
        seen: set[str] = set()
        for row, _, rank in self.stepless:
            # An evaluation row stands at the step of the training row before it.
            is_eval = bool(seen) and all(
                key.startswith("eval_") or key == "epoch" for key in row.values
            )
            reached[rank] = reached.get(rank, 0) + (0 if is_eval else 1)
            order.append(reached[rank])
            seen.update(row.values)
        stated = number(self.reading.config.get("logging_steps", (None, ""))[0])
        spacing = _spacing(order, [bar for _, bar, _ in self.stepless], self.reached) or stated or 1
        self.reading.numbered = "counted" if spacing == 1 and not stated else "placed"
        for (row, _, rank), at in zip(self.stepless, order, strict=True):
            self.ranks.of(rank).add(int(at * spacing), row.values)

    def _table(self, text: str, low: str) -> bool:
        """A printed table: a header line that opens with Step, then lines of numbers. low: the same in lower case."""
        if self.header is None:
            bare = low.lstrip("| ")
            # "step 12 | reward 0.5" is a row of names and numbers.
            if not bare.startswith("step") or _STEPPED.match(bare) or "=" in text or ":" in text:
                return False
            cells = [cell.replace(" / ", "/") for cell in _TABLE_CELL.split(text.strip("| "))]
            if len(cells) < 2 or any(number(cell) is not None for cell in cells):
                return False
            self.header = cells
            return True
        cells = _TABLE_CELL.split(text.strip("| "))
        if set(text) <= set("-|: +="):
            return True
        found = [number(cell) for cell in cells]
        if len(cells) != len(self.header) or found[0] is None:
            self.header = None
            return False
        self.reading.holds["rows"] += 1
        self.ranks.of(self.rank).add(
            int(found[0]),
            {
                key: value
                for key, value in zip(self.header[1:], found[1:], strict=True)
                if value is not None
            },
        )
        return True

    def _said(self, at: int, text: str, stripped: str) -> bool:
        """Warnings that say what no number does."""
        if (found := _NEGATIVE_KL.search(text)) is not None:
            self.reading.note("negative-kl", self._where(at), (found.group(1),))
            return True
        if "{" not in text and _VERIFIER.search(text):
            self.reading.note("verifier", self._where(at), (stripped[:200],))
            return True
        if _NOT_FINITE.search(text):
            self.reading.note("not-finite", self._where(at), (stripped[:200],))
            return True
        return False

    def _where(self, at: int) -> str:
        return f"{self.reading.at}:{at}"

    def _configuration(self, at: int, text: str) -> None:
        """Printed configurations: a dictionary over many lines, an argument list, a command line."""
        if text[:2] in ("{'", '{"') or _ARGUMENTS.match(text):
            self.depth = _depth(text)
            if self.depth > 0:
                self.pending, self.pending_at = [text], self._where(at)
            else:
                self._configured(text, self._where(at))
            return
        if "=" in text or "--" in text:
            for pattern in (_OVERRIDE, _FLAG):
                for key, value in pattern.findall(text):
                    key = key.replace("-", "_") if pattern is _FLAG else key
                    if key not in self.reading.config:
                        self.reading.config[key] = (_value(value), self._where(at))

    def _more(self, at: int, text: str) -> None:
        self.pending.append(text.strip())
        self.depth += _depth(text)
        if self.depth <= 0:
            whole, self.pending = " ".join(self.pending), []
            self._configured(whole, self.pending_at)
        elif len(self.pending) > WRAP_LIMIT * 4:
            self.pending = []

    def _configured(self, text: str, where: str) -> None:
        self.reading.holds["printed configurations"] += 1
        if text.startswith("{"):
            found = literal(text)
            if isinstance(found, dict):
                for key, value in flatten(found):
                    self.reading.config.setdefault(str(key).replace("/", "."), (value, where))
            return
        for key, value in _ARGUMENT.findall(text.partition("(")[2]):
            self.reading.config.setdefault(key, (_value(value), where))


def _alarming(low: str) -> bool:
    """Whether a line (in lower case) may tell of a crash or carry a warning."""
    for word in _ALARMING:  # noqa: SIM110 (a generator is twice as slow, and every line comes here)
        if word in low:
            return True
    return False


def _continues(held: str, text: str) -> bool:
    """Whether a line goes on with the wrapped row before it."""
    if not text.strip() or "step:" in text:
        return False
    if held.endswith((" -", ":", "/")) or text.startswith(("- ", ":")):
        return True
    last = held.rpartition(" - ")[2]
    pieces = text.split(" - ")
    fits = (
        all(":" in piece and " " not in piece.strip() for piece in pieces[1:]) and len(pieces) > 1
    )
    return fits and (":" not in last or " " not in pieces[0].strip())


def _depth(text: str) -> int:
    return sum(text.count(mark) for mark in "{[(") - sum(text.count(mark) for mark in "}])")


def _value(text: str) -> Any:
    text = text.strip().strip("'\"")
    found = number(text)
    if found is not None and not text.endswith("%"):
        return int(found) if text.lstrip("+-").isdigit() else found
    return {"true": True, "false": False, "none": None, "null": None}.get(text.lower(), text)


def _spacing(
    order: list[int], bars: list[tuple[int, int] | None], reached: dict[int, int]
) -> int | None:
    """Steps from one row to the next, read off the training bar beside the rows; None where no bar tells.

    A bar is drawn at most every tenth of a second, so single counts lag; the distance from the first to the last
    does not. A buffered standard output puts rows far from their bars: then the way the bar came tells.
    """
    totals = Counter(bar[1] for bar in bars if bar is not None)
    if not totals:
        return None
    total = totals.most_common(1)[0][0]
    if reached[total] % order[-1] == 0:
        return reached[total] // order[-1]
    beside = [
        (at, bar[0])
        for at, bar in zip(order, bars, strict=True)
        if bar is not None and bar[1] == total and bar[0] > 0
    ]
    if len(beside) < 2:
        return None
    (first_at, first), (last_at, last) = beside[0], beside[-1]
    if last_at == first_at:
        return None
    spacing = round((last - first) / (last_at - first_at))
    lags = [spacing * at - step for at, step in beside]
    return (
        spacing
        if spacing >= 1 and sorted(lags)[len(lags) // 2] <= max(LAG_STEPS, spacing)
        else None
    )
