"""Tracebacks and last words of the processes behind a console log, each process kept apart from the others."""

from __future__ import annotations

import re
from collections import deque

from klinic.sources.console.signs import sign_of
from klinic.sources.rows import Reading

TRACEBACK_LINES = 160  # lines of a traceback that are kept, newest last
OPEN_BLOCKS = 64  # processes whose tracebacks may be open at once
# What launchers and loggers put before a line; whatever names a process tells one traceback from another.
_PREFIX = re.compile(
    r"^\s*(?:"
    r"\((?P<ray>[A-Za-z_][\w.:]*(?: (?:pid|ip)=[^)]*)?)\)\s?"  # (WorkerDict pid=12, ip=..), (EngineCore_DP0 pid=3)
    r"|\[(?P<rank>(?:rank|default)\d+)\]:\s?"  # torchrun
    r"|\[\d+,(?P<mpi>\d+)\]<\w+>:\s?"  # mpirun --tag-output
    r"|(?P<srun>\d{1,4}): (?=\s|Traceback|[\w.]+(?:Error|Exception)\b|\[|ray)"  # srun -l
    r"|(?P<pdsh>[\w.-]+):\s(?=\s*File \"|Traceback|\[rank\d+\]|[\w.]+(?:Error|Exception)\b)"  # pdsh
    r"|(?P<docker>[\w.-]+)\s+\|\s"  # docker compose
    r"|(?:ERROR|CRITICAL|WARNING) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]+:\d+\]\s?"  # vLLM's logger
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: (?P<sglang>[A-Z]+\d+(?: [A-Z]+\d+)*))?\]\s"  # SGLang's logger
    r")"
)
_FRAME = re.compile(r'^\s*(?:File "|│|\|\s+File ")')
_RICH = ("╭", "│", "╰")
_OPENS = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above", "The above exception was the direct cause")
_RAY_HEAD = re.compile(r"ray::[\w.]+\(")
_REPEATED = re.compile(r"\s*\[repeated \d+x across cluster\].*$")
_ROWS = ("{'", '{"')  # rows of metrics, the longest lines of a log
_BAR = re.compile(r"\d+%\|")


def unprefixed(text: str) -> tuple[str, str]:
    """The process a line comes from ("" where it does not say), and the line without all that stood before it."""
    names = []
    for _ in range(4):
        found = _PREFIX.match(text)
        if found is None:
            break
        names += [name for name in found.groupdict().values() if name]
        text = text[found.end() :]
    return " ".join(names), _REPEATED.sub("", text)


class Crashes:
    """Gathers what a console log says of crashes; asked for every line."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._open: dict[str, tuple[str, int | None, deque[str]]] = {}
        self._said: set[str] = set()  # processes whose traceback has come to its last line

    @property
    def open(self) -> bool:
        """Whether a traceback may go on."""
        return bool(self._open)

    def take(self, at: int, text: str) -> bool:
        """Whether the line belongs to a traceback or is a last word; ``at`` is its number in the file."""
        if not self._open and not _likely(text):
            return False
        process, line = unprefixed(text)
        stripped = line.strip()
        block = self._open.get(process)
        if block is not None:
            if self._goes_on(process, line, stripped):
                block[2].append(f"{process}\t{line.rstrip()}" if process else line.rstrip())
                return True
            if _BAR.search(stripped):  # a progress bar drawn between two lines of a traceback
                return False
            self._close(process)
        where = f"{self.reading.at}:{at}"
        if _OPENS in line or _FRAME.match(line) or _RAY_HEAD.search(line):
            if len(self._open) >= OPEN_BLOCKS:
                self.end()
            self._open[process] = (where, self.reading.last_step, deque(maxlen=TRACEBACK_LINES))
            self._open[process][2].append(
                f"{process}\t{line.rstrip()}" if process else line.rstrip()
            )
            return True
        if sign_of(line) is None:
            return False
        self.reading.note("crash", where, (f"{process}\t{stripped[:800]}",))
        return "{" not in stripped  # a row of metrics may carry such a word, too

    def _goes_on(self, process: str, line: str, stripped: str) -> bool:
        if not stripped:
            return True
        indented = line[:1] in (" ", "\t") or stripped.startswith((*_RICH, 'File "'))
        chained = stripped.startswith(_CHAINED) or _OPENS in stripped
        if process in self._said:
            if indented or chained or _RAY_HEAD.search(line):
                self._said.discard(process)
                return True
            return sign_of(line) in ("ray-node", "worker-lost")  # Ray explains over several lines
        if not indented and not chained:
            self._said.add(process)  # the exception's own line; a cause may follow it
            return not _BAR.search(stripped)
        return True

    def _close(self, process: str) -> None:
        where, since, lines = self._open.pop(process)
        self._said.discard(process)
        self.reading.note("traceback", where, tuple(lines), since)

    def went_on(self) -> None:
        """A row was logged: what was said to its end before it is over."""
        for process in [p for p in self._open if p in self._said]:
            self._close(process)

    def end(self) -> None:
        """The log ends here: close what is open."""
        for process in list(self._open):
            self._close(process)


def _likely(text: str) -> bool:
    """Whether a traceback or a last word may begin here."""
    if text.startswith(_ROWS) or "step:" in text[:60]:
        return False
    return _OPENS in text or 'File "' in text or "ray::" in text or sign_of(text) is not None
