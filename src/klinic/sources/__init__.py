"""Where bytes become rows: one file per format, found by walking this folder.

A format is a module with ``ORDER`` (lower is asked first), ``sniff(name, head) -> bool`` and
``read(stream, head, reading)``, which fills a :class:`klinic.sources.rows.Reading`.

A binary format has ``sniff_bytes(name, head)`` instead, and ``claims(name)``, which finds its files in a folder. One whose
run goes on over several files also splits ``read`` in two: ``decode(stream, head, at)`` for each, and
``join([(tag group, decoded), ...], reading)``.

A format whose log is a folder (MLflow's, with a file a metric) has ``is_log(folder)``, ``read_folder(folder, reading)`` and
``INSIDE``: the folders in it that hold nothing else to read.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from klinic.compiled import plugins
from klinic.errors import KlinicError, MissingExtra, UnreadableInput
from klinic.sources.rows import HEAD_CHARS, Reading, Vocabulary

HEAD_BYTES = 1 << 16
# First bytes of files that people hand over by mistake, or that another reader is for.
MAGIC = (
    (
        b"\x1f\x8b",
        "it is gzip-compressed",
        "unpack it first: gunzip -k FILE, or: zcat FILE | klinic diagnose -",
    ),
    (b"\x28\xb5\x2f\xfd", "it is zstd-compressed", "unpack it first: zstd -d FILE"),
    (b"BZh", "it is bzip2-compressed", "unpack it first: bunzip2 -k FILE"),
    (b"PK\x03\x04", "it is a zip archive", "unpack it, then name the log inside"),
)


@cache
def _all_formats() -> tuple[ModuleType, ...]:
    here = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    found = [module for module in here if hasattr(module, "ORDER")]
    found += [point.load() for point in plugins("klinic.sources")]
    return tuple(sorted(found, key=lambda module: module.ORDER))


@cache
def formats() -> tuple[ModuleType, ...]:
    """Every format of text, in the order in which they are asked."""
    return tuple(module for module in _all_formats() if hasattr(module, "sniff"))


@cache
def binary_formats() -> tuple[ModuleType, ...]:
    """Every binary format, in the order in which they are asked: before those of text."""
    return tuple(module for module in _all_formats() if hasattr(module, "sniff_bytes"))


@cache
def folder_formats() -> tuple[ModuleType, ...]:
    """Every format whose log is a folder."""
    return tuple(module for module in _all_formats() if hasattr(module, "is_log"))


def folder_format(folder: Path) -> ModuleType | None:
    """The format of which this folder as a whole is a log, if any."""
    try:
        return next((module for module in folder_formats() if module.is_log(folder)), None)
    except OSError:
        return None


def whole_log(place: Path) -> Path:
    """The folder that is a log of which ``place`` is only a part; else ``place``."""
    below = place.resolve()
    for folder in below.parents:
        inside = below.relative_to(folder).parts[0]
        if any(inside in module.INSIDE for module in folder_formats()):
            try:
                owners = {folder_format(folder), *(claimed_by(p.name) for p in folder.iterdir())}
            except OSError:
                continue
            if any(inside in getattr(owner, "INSIDE", ()) for owner in owners):
                return folder
    return place


def claimed_by(name: str) -> ModuleType | None:
    """The binary format whose files are named like this, if any."""
    return next((module for module in binary_formats() if module.claims(name)), None)


def read_files(
    files: Iterable[tuple[Path, str]], at: str, vocabulary: Vocabulary | None = None
) -> tuple[list[Reading], list[KlinicError]]:
    """Read the logs of one run. files: (path, tag group its folder stands for). Returns readings, and what could not be read.

    Each file gives a reading; the files of a format that goes on over several give one together, named ``at``.
    """
    readings: list[Reading] = []
    troubles: list[KlinicError] = []
    parts: dict[ModuleType, list[tuple[str, Any, str]]] = {}
    for path, group in files:
        module = claimed_by(path.name)
        try:
            if module is None or not hasattr(module, "join"):
                readings.append(read_file(path, vocabulary))
                continue
            with opened(path) as stream:
                head = stream.read(HEAD_BYTES)
                if head:  # a run that is only starting has made its file and written nothing
                    decoded = module.decode(stream, head, str(path))
                    parts.setdefault(module, []).append((group, decoded, str(path)))
        except (UnreadableInput, MissingExtra) as trouble:
            troubles.append(trouble)
    for module, found in parts.items():
        reading = Reading(found[0][2] if len(found) == 1 else at, vocabulary)
        module.join([(group, decoded) for group, decoded, _ in found], reading)
        readings.append(reading)
    return readings, troubles


def read_file(path: Path, vocabulary: Vocabulary | None = None) -> Reading:
    """Read one log. Raises UnreadableInput where it is missing, locked, empty or binary."""
    module = folder_format(path) if path.is_dir() else None
    if module is not None:
        reading = Reading(str(path), vocabulary)
        module.read_folder(path, reading)
        return reading
    with opened(path) as stream:
        return read_stream(stream, str(path), vocabulary)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """An open file. Raises UnreadableInput where it cannot be opened or read."""
    try:
        with path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise UnreadableInput(
            "no such file or folder",
            str(path),
            "check the path; RUN is a log file, a folder, or - for standard input",
        ) from None
    except PermissionError:
        raise UnreadableInput(
            "no permission to read it", str(path), f"chmod u+r {path.name}, or read it as its owner"
        ) from None
    except IsADirectoryError:
        raise UnreadableInput("it is a folder", str(path)) from None
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be read ({trouble.strerror or trouble})",
            str(path),
            "check the disk or the mount",
        ) from None


def read_standard_input(vocabulary: Vocabulary | None = None) -> Reading:
    """Read a log from standard input."""
    return read_stream(sys.stdin.buffer, "-", vocabulary)


def read_stream(stream: BinaryIO, at: str, vocabulary: Vocabulary | None = None) -> Reading:
    """Read an open stream whose name is ``at``."""
    head = stream.read(HEAD_BYTES)
    if not head.strip():
        raise UnreadableInput(
            "it is empty" if not head else "it holds only blank lines",
            at,
            "name the file the trainer writes to; is the run still starting?",
        )
    reading = Reading(at, vocabulary)
    for module in binary_formats():
        if module.sniff_bytes(Path(at).name, head):
            module.read(stream, head, reading)
            return reading
    for magic, what, hint in MAGIC:
        if head.startswith(magic):
            raise UnreadableInput(what, at, hint)
    head, stream = _as_utf8(head, stream)
    if b"\0" in head:
        raise UnreadableInput(
            "it is a binary file, not a log",
            at,
            "name the trainer's text log, JSONL, CSV or trainer_state.json",
        )
    reading.head = head[:HEAD_CHARS].decode("utf-8", "replace")
    for module in formats():
        if module.sniff(Path(at).name, reading.head):
            module.read(stream, head, reading)
            break
    return reading


def _as_utf8(head: bytes, stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """UTF-16 logs (a PowerShell redirect writes them) become UTF-8; a byte-order mark is dropped."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        import io

        text = (head + stream.read()).decode("utf-16", "replace").encode()
        return text[:HEAD_BYTES], io.BytesIO(text[HEAD_BYTES:])
    return head.removeprefix(b"\xef\xbb\xbf"), stream
