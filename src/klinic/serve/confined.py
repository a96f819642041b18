"""No file outside the given folders is read, whatever a link in them says."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

# What a program itself reads: the system's own gauges, time zones, nothing of a user's.
SYSTEM = (
    "/proc/self",
    "/proc/cpuinfo",
    "/sys/",
    "/dev/null",
    "/dev/urandom",
    "/usr/share/zoneinfo",
)
EVENTS = ("open", "os.listdir", "os.scandir", "sqlite3.connect")


def within(path: str | Path, roots: Iterable[str]) -> bool:
    """Whether a path, its links followed, lies in one of the folders (real paths) or is one of them."""
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in roots)


def confine(roots: Iterable[str], *more: str) -> None:
    """From here on this process opens nothing outside ``roots``, ``more`` and Python's own folders.

    It cannot be undone. An attempt raises PermissionError, as if the file's owner had forbidden it.
    """
    own = [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isabs, sys.path), *more]
    own.append(str(Path(__file__).parents[1]))
    allowed = sorted({*roots, *(os.path.realpath(path) for path in own)})
    system = tuple(SYSTEM)

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event not in EVENTS or not args:
            return
        path = args[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str | os.PathLike):
            return  # an open handle
        name = str(path)
        if event == "sqlite3.connect":
            from urllib.parse import unquote

            name = unquote(name.removeprefix("file:").partition("?")[0])
            if name in ("", ":memory:"):
                return
        if not within(name, allowed) and not os.path.realpath(name).startswith(system):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    sys.addaudithook(hook)
