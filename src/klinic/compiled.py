"""What start-up needs and rarely changes: parsed TOML kept beside the bytecode, and the plugins."""

from __future__ import annotations

import os
import tempfile
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
        place.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(msgspec.msgpack.encode({"stamp": stamp, "data": data}))
        os.replace(temporary, place)
    except OSError:
        pass  # a read-only installation works the same, a little slower
    return data


@cache
def _entry_points() -> Any:
    from importlib.metadata import entry_points

    return entry_points()


def plugins(group: str) -> list[Any]:
    """Entry points of other packages in ``klinic.failures``, ``klinic.trainers`` or ``klinic.sources``."""
    return list(_entry_points().select(group=group))
