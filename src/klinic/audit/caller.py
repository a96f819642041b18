"""Calls the user's function in a process of its own: a time limit for each call, and one for all."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage, did_you_mean

WORKER = Path(__file__).with_name("worker.py")
IMPORT_LIMIT = 180.0  # seconds to import the function's module: torch on a slow disk takes one minute (our choice)
CHUNK = 1 << 16


class OutOfTime(Exception):
    """All time is spent."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to. score: NaN where it gave no finite number. trouble: "", error, died, hung, none or non-finite."""

    score: float
    seconds: float
    trouble: str = ""
    told: str = ""

    @property
    def fine(self) -> bool:
        """It gave a number."""
        return not self.trouble


class Caller:
    """The function in its process. seen: what could be seen of it; limit: seconds a call, total: seconds in all."""

    def __init__(self, target: str, python: str | None, limit: float, total: float) -> None:
        self.target, self.python, self.limit = target, python or sys.executable, limit
        self.ends = time.monotonic() + total
        self.process: subprocess.Popen[bytes] | None = None
        self.calls = 0
        self._held = b""

    def __enter__(self) -> Caller:
        self.seen = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start(self) -> dict[str, Any]:
        module = self.target.rpartition(":")[0]
        if not module or not self.target.rpartition(":")[2]:
            raise BadUsage(
                f"cannot understand {self.target!r}",
                "klinic audit-reward",
                "write MODULE:FUNCTION or FILE.py:FUNCTION, e.g. rewards:accuracy",
            )
        if module.endswith(".py") and not Path(module).is_file():
            raise BadUsage("no such file or folder", module, "check the path")
        try:
            self.process = subprocess.Popen(
                [self.python, str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as trouble:
            raise BadUsage(
                f"cannot be started ({trouble.strerror})", self.python, "--python names a Python"
            ) from None
        self._held = b""
        seen = self._asked({"do": "open", "target": self.target}, IMPORT_LIMIT)
        if isinstance(seen, str):
            raise BadUsage(
                f"importing it ended the process or took more than {IMPORT_LIMIT:.0f} s",
                self.target,
                "import it by itself first",
            )
        if not seen["ok"] and seen["missing"]:
            raise BadUsage(
                f"there is no function {self.target.rpartition(':')[2]!r}",
                module,
                did_you_mean(self.target.rpartition(":")[2], seen["known"])
                or f"known: {', '.join(seen['known'][:12]) or 'none'}",
            )
        if not seen["ok"]:
            raise BadUsage(
                f"it cannot be imported ({seen['error']})",
                self.target,
                "import it by itself first; --python names the Python of another environment",
            )
        return seen

    def _end(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()
        self.process = None

    def _asked(self, message: dict[str, Any], limit: float) -> dict[str, Any] | str:
        """The answer, or why none came: died, hung."""
        return self._heard(limit) if self._said(message) else "died"

    def _said(self, message: dict[str, Any]) -> bool:
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message, default=str).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _heard(self, limit: float) -> dict[str, Any] | str:
        assert self.process is not None and self.process.stdout is not None
        ends, handle = time.monotonic() + limit, self.process.stdout.fileno()
        while b"\n" not in self._held:
            left = ends - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                return "hung"
            more = os.read(handle, CHUNK)
            if not more:
                return "died"
            self._held += more
        line, _, self._held = self._held.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def call(self, plan: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[Outcome]:
        """One outcome a row, each of its own call; after the first that hung or ended the process there are no more.

        Raises OutOfTime where the time of all calls ends.
        """
        told: list[Outcome] = self._calls(
            {"do": "call", "plan": plan, "rows": list(rows)}, len(rows)
        )
        return told

    def together(self, plan: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[Outcome]:
        """The same of one call for all rows, for a function that takes lists."""
        one: list[Outcome]
        (one,) = self._calls({"do": "together", "plan": plan, "rows": list(rows)}, 1, whole=True)
        return one

    def _calls(self, message: dict[str, Any], count: int, whole: bool = False) -> list[Any]:
        if self.ends <= time.monotonic():
            raise OutOfTime
        if self.process is None:
            self._start()
        told: list[Any] = []
        alive = self._said(message)
        for _ in range(count):
            self.calls += 1
            left, begun = self.ends - time.monotonic(), time.monotonic()
            got = self._heard(max(0.0, min(self.limit, left))) if alive else "died"
            if isinstance(got, str):
                code = None if got == "hung" or self.process is None else self.process.wait()
                self._end()
                if got == "hung" and left < self.limit:
                    raise OutOfTime  # all time ended, not this call's
                one = Outcome(float("nan"), time.monotonic() - begun, got, "" if code is None else f"exit {code}")  # fmt: skip
                return [*told, [one] if whole else one]
            outcomes = _outcomes(got)
            told.append(outcomes if whole else outcomes[0])
        return told


def _outcomes(got: dict[str, Any]) -> list[Outcome]:
    if "error" in got:
        return [Outcome(float("nan"), got["seconds"], "error", got["error"])]
    return [_outcome(one, got["seconds"] / len(got["scores"])) for one in got["scores"]]


def _outcome(score: Any, seconds: float) -> Outcome:
    if score is None:
        return Outcome(float("nan"), seconds, "none", "None")
    if isinstance(score, str):
        return Outcome(float("nan"), seconds, "non-finite", score)
    return Outcome(score, seconds)
