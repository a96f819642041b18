"""What a run saved: its checkpoints on disk, and whether each is whole."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from klinic.run import Checkpoint
from klinic.trainers import Table, tables


def checkpoints(folder: Path, table: Table) -> tuple[Checkpoint, ...]:
    """Saved policies under the run's folder, oldest first, with what is missing of each."""
    rule = table.checkpoint
    patterns = (
        [re.compile(rule.pattern)]
        if rule.pattern
        else [re.compile(t.checkpoint.pattern) for t in tables().values() if t.checkpoint.pattern]
    )
    found: dict[tuple[int, str], Checkpoint] = {}
    base = len(folder.parts)
    for here, below, _ in os.walk(folder):
        place = Path(here)
        if len(place.parts) - base >= 3:
            below[:] = []
        kept = []
        for name in below:
            match = next((m for pattern in patterns if (m := pattern.search(name))), None)
            if match is None:
                kept.append(name)
                continue
            step = int(match.group(1))
            path = place / name
            found[step, name] = Checkpoint(step, name, str(path), _missing(path, rule.parts))
        below[:] = [name for name in kept if not name.startswith(".")]
        if len(found) > 10_000:
            break
    return tuple(found[key] for key in sorted(found))


def _missing(path: Path, parts: Iterable[str]) -> tuple[str, ...]:
    def there(pattern: str) -> bool:
        try:
            return any(found.stat().st_size > 0 for found in path.glob(pattern))
        except OSError:
            return False

    try:
        if not any(path.iterdir()):
            return ("everything",)
    except OSError:
        return ("everything",)
    return tuple(
        part for part in parts if not any(there(alternative) for alternative in part.split("|"))
    )
