"""One JSON document: a list of samples, or lists of them by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from klinic.errors import UnreadableInput
from klinic.rollouts.columns import columns
from klinic.rollouts.dump import Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.places import parts_of
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import rows_of

ORDER = 60  # after lines, which have whole objects a line
WRITTEN = re.compile(
    rb'"(completions?|responses?|outputs?|generations?|think|thinking|messages|model_output)"\s*:\s*["\[{]'
)


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether it begins like a list of objects, or like an object of such lists, that hold what was written and what it earned."""
    start = head.lstrip()[:200]
    if not name.lower().endswith(".json") or not (
        start[:1] == b"[" or (start[:1] == b"{" and b"[" in start)
    ):
        return False
    wrote = WRITTEN.search(head) is not None or any(
        f'"{n}"'.encode() in head for n in names.values()
    )
    return wrote and any(mark in head for mark in (b"reward", b"score", b"correct"))


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches of the whole file. Raises UnreadableInput where it is no JSON."""
    if since == 0:
        yield from packed(_rows(dump, names))


def _rows(dump: Dump, names: Mapping[str, str]) -> Iterator[list[Rollout]]:
    try:
        held = msgspec.json.decode(dump.path.read_bytes())
    except msgspec.DecodeError as trouble:
        raise UnreadableInput(
            f"no JSON ({trouble})", str(dump.path), "write it again, or leave it out"
        ) from None
    for step, rows in _lists(held):
        at = columns(rows[:20], names, parts_of(dump.trainer))
        if at.samples():
            yield from map(
                rows_of(replace(dump, step=dump.step if step is None else step), at), rows
            )


def _lists(held: Any) -> Iterator[tuple[int | None, list[dict[str, Any]]]]:
    """Lists of objects, each with the step that its name says where it is a number."""
    if isinstance(held, list):
        yield None, [row for row in held if isinstance(row, dict)]
    elif isinstance(held, dict):
        for key, value in held.items():
            if isinstance(value, list):
                yield (
                    int(key) if key.lstrip("-").isdigit() else None,
                    [r for r in value if isinstance(r, dict)],
                )
