"""What slime and miles save with torch: a dictionary that holds a list of samples. Only tensors and plain data are unpickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from klinic.errors import MissingExtra, UnreadableInput
from klinic.rollouts.columns import columns
from klinic.rollouts.dump import Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import rows_of

ORDER = 20
ZIP = b"PK\x03\x04"


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether torch wrote it and its pickle speaks of samples: weights do not."""
    return name.endswith(".pt") and head[:4] == ZIP and b"samples" in head


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches of the whole file. Raises MissingExtra without torch, UnreadableInput for what is not plain data."""
    if since == 0:
        yield from packed(_rows(dump, names))


def _rows(dump: Dump, names: Mapping[str, str]) -> Iterator[list[Rollout]]:
    try:
        import torch
    except ImportError:
        raise MissingExtra(
            "a file saved with torch needs torch to be read",
            str(dump.path),
            "pip install 'klinic[torch]'",
        ) from None
    try:
        held = torch.load(dump.path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as trouble:  # torch raises whatever the pickle brings about
        raise UnreadableInput(
            f"not plain data ({type(trouble).__name__})",
            str(dump.path),
            "klinic runs no code out of a pickle: dump plain dictionaries",
        ) from None
    rows = held.get("samples") if isinstance(held, dict) else held
    if not isinstance(rows, list) or not rows:
        raise UnreadableInput(
            "no list of samples", str(dump.path), "name a file of --save-debug-rollout-data"
        )
    plain = [
        {key: _plain(value) for key, value in row.items()} for row in rows if isinstance(row, dict)
    ]
    take = rows_of(dump, columns(plain[:20], names))
    for row in plain:
        yield take(row)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
