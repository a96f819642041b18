"""One run of the trainer as a process: its output kept, its time limited, its folder renamed when it is done.

A folder without the ending ``.part`` is a finished run and never run again. A half-run one, left by a kill, is thrown
away and its process, if it still lives, is ended: two writers in one folder would make a log that is neither's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from klinic.errors import KlinicError

LAST_LINES = 12  # of the output, kept in the ledger
GRACE = 10.0  # seconds between asking a process to end and ending it
TICK = 0.2
RUNNING = "running.json"
LOG = "train.log"
OUTPUT = "train.output"  # the same where the trainer writes a log and settings of its own: klinic reads those


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended. exit: None if it ran out of time. tail: the last lines it printed."""

    exit: int | None
    seconds: float
    tail: tuple[str, ...]
    folder: Path

    @property
    def well(self) -> bool:
        """Whether it ended by itself and said so."""
        return self.exit == 0


def partial(out: Path) -> Path:
    """Where a run writes until it is done."""
    return out.with_name(out.name + ".part")


def failed(out: Path) -> Path:
    """Where a run is kept whose command failed."""
    return out.with_name(out.name + ".failed")


def execute(
    words: Sequence[str],
    out: Path,
    timeout: float | None = None,
    tick: Callable[[float], None] | None = None,
) -> Done:
    """Run a command that writes into ``partial(out)``, and rename that to ``out`` if it ends well.

    A failed one is kept as ``out`` + ".failed". Raises KlinicError where the program does not exist.
    """
    part, log = partial(out), out.with_name(out.name + ".log")
    out.parent.mkdir(parents=True, exist_ok=True)
    _remove(part)
    note = out.parent.parent / RUNNING
    began = time.monotonic()
    with open(log, "wb") as stream:
        try:
            process = subprocess.Popen(
                list(words),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        except OSError as trouble:
            raise KlinicError(
                f"cannot be started ({trouble.strerror})",
                words[0],
                "check the first word of --command; it runs in the current folder, without a shell",
            ) from None
        note.write_text(
            json.dumps({"pid": process.pid, "started": _started(process.pid), "part": str(part)})
        )
        try:
            code = _wait(process, began, timeout, tick)
        except BaseException:
            _end(process.pid, process)
            raise
    note.unlink(missing_ok=True)
    tail = _tail(log)
    seconds = round(time.monotonic() - began, 1)
    part.mkdir(exist_ok=True)
    _keep(log, part)
    place = out if code == 0 else failed(out)
    _remove(place)
    os.replace(part, place)
    return Done(code, seconds, tail, place)


def clear(root: Path) -> list[str]:
    """End what an interrupted rescue left running and remove its half-run folders; their names are returned."""
    note = root / RUNNING
    with contextlib.suppress(OSError, ValueError, KeyError):
        left = json.loads(note.read_text())
        pid = int(left["pid"])
        # A process id is used again: only the one that began at the same tick is ours.
        if left["started"] is not None and _started(pid) == left["started"]:
            _end(pid, None)
    note.unlink(missing_ok=True)
    halves = sorted(root.glob("*/*.part"))
    for half in halves:
        _remove(half)
        half.with_suffix(".log").unlink(missing_ok=True)
    return [str(half.relative_to(root)) for half in halves]


def _wait(
    process: subprocess.Popen[bytes],
    began: float,
    timeout: float | None,
    tick: Callable[[float], None] | None,
) -> int | None:
    while True:
        try:
            return process.wait(TICK)
        except subprocess.TimeoutExpired:
            passed = time.monotonic() - began
            if tick is not None:
                tick(passed)
            if timeout is not None and passed > timeout:
                _end(process.pid, process)
                return None


def _end(pid: int, process: subprocess.Popen[bytes] | None) -> None:
    """End a process and all it started, kindly first."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, kind)
        limit = time.monotonic() + GRACE
        while time.monotonic() < limit:
            gone = process.poll() is not None if process is not None else _started(pid) is None
            if gone:
                break
            time.sleep(0.05)
        else:
            continue
        break


def _started(pid: int) -> str | None:
    """When a process began, in clock ticks since boot; None where it is gone or the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def _keep(log: Path, part: Path) -> None:
    """Put the output beside the trainer's own log; klinic reads it only where that one says less than it must.

    Without curves of its own the run is what it printed; without settings of its own, what it printed says which.
    """
    from klinic.compare.settings import says
    from klinic.errors import UnreadableInput
    from klinic.read import read_all

    try:
        own = [run for run in read_all(part) if run.curves]
    except UnreadableInput:
        own = []
    enough = bool(own) and all(says(run) for run in own)
    os.replace(log, part / (OUTPUT if enough else LOG))


def _tail(log: Path) -> tuple[str, ...]:
    with open(log, "rb") as stream:
        stream.seek(max(0, log.stat().st_size - 8192))
        lines = stream.read().decode("utf-8", "replace").replace("\r", "\n").splitlines()
    return tuple(line[:300] for line in lines if line.strip())[-LAST_LINES:]


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
