"""The ledger: one JSON line an event, appended and flushed, so that no interruption loses more than the line being written."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage

NAME = "ledger.jsonl"


class Ledger:
    """Events of one rescue, oldest first. A line broken by a kill is left where it is and not read."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.events: list[dict[str, Any]] = []
        if self.path.exists():
            text = self.path.read_text(encoding="utf-8", errors="replace")
            for line in text.splitlines():
                try:
                    self.events.append(json.loads(line))
                except ValueError:
                    continue
            if text and not text.endswith("\n"):
                self._append("\n")

    def write(self, event: str, **what: Any) -> dict[str, Any]:
        """Add an event with the time of day."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        entry = {"event": event, "at": now, **what}
        self._append(json.dumps(entry, ensure_ascii=False, default=_plain) + "\n")
        self.events.append(entry)
        return entry

    def once(self, event: str, **what: Any) -> dict[str, Any]:
        """Add an event unless the same one is there: what is worked out again after an interruption is not told twice."""
        same = json.loads(json.dumps(what, default=_plain))
        for entry in self.events:
            if entry.get("event") == event and all(entry.get(k) == v for k, v in same.items()):
                return entry
        return self.write(event, **what)

    def first(self, event: str) -> dict[str, Any] | None:
        """The first event of a kind."""
        return next((entry for entry in self.events if entry.get("event") == event), None)

    def _append(self, text: str) -> None:
        with open(self.path, "a", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())


def opened(folder: Path, run: Path) -> Ledger:
    """The ledger of a rescue of ``run`` in ``folder``. Raises BadUsage where the folder holds something else."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        begun = (folder / NAME).exists()
        if not begun and any(folder.iterdir()):
            raise BadUsage(
                "the folder is not empty and holds no rescue", str(folder), "name another with -o"
            )
        found = Ledger(folder)
        begin = found.first("begin")
        if begin is not None and begin.get("run") != str(run):
            raise BadUsage(
                f"it is the rescue of another run ({begin.get('run')})",
                str(folder),
                "name another with -o",
            )
        if begin is None:
            found.write("begin", run=str(run))
        return found
    except OSError as trouble:
        raise BadUsage(
            f"cannot be written ({trouble.strerror})", str(folder), "name another folder with -o"
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        return value.item()
    return str(value)
