"""Where the samples of a path are kept, and the descriptions that lie there; read without DuckDB."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

Described = dict[int, dict[str, Any]]


def base() -> Path:
    """Where all samples are kept: under $XDG_CACHE_HOME/klinic, by default ~/.cache/klinic."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "klinic" / "rollouts"


def folder_of(path: Path, names: Mapping[str, str]) -> Path:
    """Where the samples of a path are kept."""
    key = f"{path.resolve()}\n{sorted(names.items())}"
    name = hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
    return base() / name


def kept_steps(path: Path, names: Mapping[str, str] | None = None) -> Described:
    """The descriptions that the last taking-in of a path left; empty where there are none."""
    return steps_in(folder_of(path, names or {}))


def steps_in(folder: Path) -> Described:
    """The descriptions in a cache folder; empty where there are none, or they are damaged."""
    try:
        raw = (folder / "steps.msgpack").read_bytes()
        return msgspec.msgpack.decode(raw, type=Described)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return {}
