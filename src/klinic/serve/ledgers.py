"""The ledgers of ``klinic rescue`` that lie in the given folders; they are only read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from klinic.folders import DEPTH
from klinic.rescue.ledger import NAME
from klinic.serve.confined import within

MOST = 8 << 20  # bytes of one ledger that are read (our choice)


def ledgers(roots: Sequence[str]) -> list[dict[str, Any]]:
    """Each with ``id``, ``folder``, ``run``, ``changed``, ``status`` and its ``events``, the newest ledger first."""
    found = []
    for root in roots:
        base = root.count(os.sep)
        for folder, below, names in os.walk(root):
            below[:] = sorted(n for n in below if not n.startswith("."))
            if folder.count(os.sep) - base >= DEPTH:
                below[:] = []
            path = Path(folder, NAME)
            if NAME in names and within(path, roots):
                events = _events(path)
                if events:
                    found.append(_ledger(path, events))
    return sorted(found, key=lambda ledger: -ledger["changed"])


def _ledger(path: Path, events: list[dict[str, Any]]) -> dict[str, Any]:
    end = next((e for e in reversed(events) if e["event"] == "end"), None)
    begin = next((e for e in events if e["event"] == "begin"), {})
    diagnosed = next((e for e in events if e["event"] == "diagnosed"), {})
    return {
        "id": hashlib.sha256(str(path).encode(errors="surrogateescape")).hexdigest()[:12],
        "folder": str(path.parent),
        "run": str(begin.get("run", "")),
        "failure": diagnosed.get("failure"),
        "status": str(end.get("status")) if end else "running",
        "changed": path.stat().st_mtime,
        "events": events,
    }


def _events(path: Path) -> list[dict[str, Any]]:
    events = []
    try:
        with path.open("rb") as stream:
            text = stream.read(MOST).decode("utf-8", "replace")
    except OSError:
        return []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # being written, or broken by a kill
            continue
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            events.append(event)
    return events
