"""What the learner has done, in one JSON file that is written whole or not at all."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from klinic.errors import UnreadableInput
from klinic.files import write_whole

VERSION = 1


@dataclass
class Progress:
    """turn: the round, 1 or 2. at: the current task. seen, hints, tries, done: by ``turn/task``. lab: the last exercise."""

    version: int = VERSION
    turn: int = 1
    at: str = "read"
    seen: dict[str, bool] = field(default_factory=dict)
    hints: dict[str, int] = field(default_factory=dict)
    tries: dict[str, list[str]] = field(default_factory=dict)
    done: dict[str, bool] = field(default_factory=dict)
    lab: dict[str, Any] = field(default_factory=dict)

    def key(self, task: str | None = None) -> str:
        """The key of a task in this round."""
        return f"{self.turn}/{task or self.at}"


def default_place() -> Path:
    """``$XDG_DATA_HOME/klinic/course.json``, by default under ~/.local/share."""
    home = os.environ.get("XDG_DATA_HOME")
    return (Path(home) if home else Path.home() / ".local" / "share") / "klinic" / "course.json"


def load(place: Path) -> tuple[Progress, Path | None]:
    """The progress kept at ``place``, a fresh one where there is none; and where a broken file was put aside."""
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
        return _checked(kept), None
    except FileNotFoundError:
        return Progress(), None
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be read ({trouble.strerror})", str(place), "name another file with --progress"
        ) from None
    except (ValueError, TypeError, KeyError):
        return Progress(), _put_aside(place)


def _checked(kept: Any) -> Progress:
    """Raises ValueError where a field is of another kind than a Progress has."""
    from klinic.course.plan import ids

    if not isinstance(kept, dict) or kept.get("version") != VERSION:
        raise ValueError("not a progress file")
    fresh = Progress()
    known = {f.name for f in fields(Progress)}
    for name, value in kept.items():
        if name not in known:
            continue
        if type(value) is not type(getattr(fresh, name)):
            raise ValueError(name)
        setattr(fresh, name, value)
    inside = {"seen": bool, "hints": int, "tries": list, "done": bool}
    for name, kind in inside.items():
        if not all(isinstance(value, kind) for value in getattr(fresh, name).values()):
            raise ValueError(name)
    if fresh.turn not in (1, 2) or fresh.at not in ids():
        raise ValueError("at")
    return fresh


def _put_aside(place: Path) -> Path:
    number = 1
    while (aside := place.with_name(f"{place.name}.broken-{number}")).exists():
        number += 1
    try:
        os.replace(place, aside)
    except OSError as trouble:
        raise UnreadableInput(
            f"it is broken and cannot be put aside ({trouble.strerror})",
            str(place),
            "name another file with --progress",
        ) from None
    return aside


def store(progress: Progress, place: Path) -> None:
    """Write it whole. Raises UnreadableInput where the folder cannot be written."""
    text = json.dumps(asdict(progress), ensure_ascii=False, indent=1)
    write_whole(place, text.encode(), parents=True)
