"""What start-up needs and rarely changes: parsed TOML kept beside the bytecode, and the plugins."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


def compiled(name: str, sources: Sequence[Path], make: Callable[[], Any]) -> Any:
    """What ``make`` returns (plain data), from the cache where no source is newer or of another size.

    The cache lies in ``__pycache__`` beside this module, like Python's own; where it cannot be written or read,
    ``make`` is simply called.
    """
    try:
        stamp = [[path.name, (found := path.stat()).st_mtime_ns, found.st_size] for path in sources]
    except OSError:
        return make()
    place = Path(__file__).parent / "__pycache__" / f"{name}.msgpack"
    try:
        kept = msgspec.msgpack.decode(place.read_bytes())
        if kept["stamp"] == stamp:
            return kept["data"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        pass
    data = make()
    try:
        import tempfile

        place.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.msgpack.encode({"stamp": stamp, "data": data}))
        os.replace(temporary, place)
    except OSError:
        pass  # a read-only installation works the same, a little slower
    return data


def parsed(path: Any) -> dict[str, Any]:
    """A TOML file's content. path: a Path or a package resource."""
    import tomllib

    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def _declared() -> bool:
    """Whether any installed package declares an entry point of klinic: asking importlib.metadata costs 20 ms."""
    for place in sys.path:
        try:
            for path in Path(place or ".").glob("*.dist-info/entry_points.txt"):
                if "[klinic." in path.read_text(encoding="utf-8", errors="replace"):
                    return True
        except OSError:
            continue
    return False


def plugins(group: str) -> list[Any]:
    """Entry points of other packages in ``klinic.failures``, ``klinic.trainers`` or ``klinic.sources``."""
    if not _declared():
        return []
    from importlib.metadata import entry_points

    return list(entry_points(group=group))
