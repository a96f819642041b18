"""A file that only grows, one JSON object a line, and of which a killed process loses at most the last line."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage, UnreadableInput

BLOCK = 1 << 16  # bytes read at once on the way back to the last line's end


class Lines:
    """An open JSONL file. Each line is handed to the system whole, in one write at the file's end.

    What another writer appends stays whole as well. Opening an existing file cuts off what follows its last newline: the
    line a killed process did not finish. Raises UnreadableInput where the file cannot be opened, BadUsage where it holds
    something else than JSON lines, which is then left as it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as trouble:
            raise UnreadableInput(
                f"cannot be written ({trouble.strerror})",
                str(path),
                "name a folder that exists and may be written to",
            ) from None
        try:
            self.size = _mended(self._file, path)
        except BadUsage:
            os.close(self._file)
            raise
        self._torn = False

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one row. Raises OSError where the system does not take all of it (the disk is full)."""
        text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        # After a line that was only half taken, a line of its own keeps the damage to that one.
        data = (b"\n" if self._torn else b"") + text.encode("utf-8", "replace") + b"\n"
        taken = os.write(self._file, data)
        self.size += taken
        self._torn = taken < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Give the file back; nothing waits in a buffer."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _mended(file: int, path: Path) -> int:
    """The file's size once its torn last line is cut off."""
    size = os.fstat(file).st_size
    if size and _read(file, 0, 1) != b"{":
        raise BadUsage("it holds no JSON lines", str(path), "name a new file, or a run's folder")
    kept = size
    while kept:
        begin = max(0, kept - BLOCK)
        end = _read(file, begin, kept - begin).rfind(b"\n")
        if end >= 0:
            kept = begin + end + 1
            break
        kept = begin
    if kept < size:
        os.ftruncate(file, kept)
    return kept


def _read(file: int, at: int, count: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, count)


def rows_with(path: Path, key: str) -> Iterator[dict[str, Any]]:
    """The rows of a file that open with this key, as ``Lines`` writes them."""
    begin = f"{{{json.dumps(key)}:".encode()
    with path.open("rb") as stream:
        for line in stream:
            if line.startswith(begin):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue
