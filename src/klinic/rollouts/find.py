"""Which files of a run hold its rollouts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from klinic.errors import UnreadableInput
from klinic.rollouts.dump import Dump
from klinic.rollouts.formats import layouts
from klinic.rollouts.places import Place, places, split_in, step_in

HEAD = 256 * 1024
DEEPEST = 12
# Folders that hold no samples: version control, environments, caches, saved weights.
PASSED_OVER = re.compile(
    r"^(\.(?!art$).*|__pycache__|node_modules|venv|site-packages|checkpoint-\d+|actor|critic|huggingface|tmp)$"
)
ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet", ".pt", ".yaml", ".yml", ".log", ".txt", ".out")


def find(path: Path, names: Mapping[str, str] | None = None) -> list[Dump]:
    """The dumps of a run's folder, or the one that a file is, by step and name.

    Cheap: names are listed, and the first bytes are read of one file of each kind of name. names: column -> the user's own
    name, for files whose columns klinic does not know. Raises UnreadableInput where the path is not there.
    """
    path, names = Path(path), names or {}
    if not path.exists():
        raise UnreadableInput(
            "no such file or folder", str(path), "name the run's folder or the file of its rollouts"
        )
    if path.is_file():
        whole = path.absolute()
        found = _look(path, "/".join(whole.parts[-4:]), names)
        return [found] if found else []
    known: dict[str, Dump | None] = {}
    dumps: list[Dump] = []
    for file, below in _files(path):
        kind = re.sub(r"\d+", "#", below)
        if known.get(kind) is None:
            if kind in known:
                continue
            known[kind] = _look(file, below, names)
        if (like := known[kind]) is not None:
            dumps.append(replace(like, path=file, step=_step(like, below)))
    return sorted(dumps, key=lambda d: (d.step is None, d.step or 0, str(d.path)))


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file that may hold rollouts, with its path below the folder."""
    waiting = [(str(folder), "", 0)]
    while waiting:
        at, below, depth = waiting.pop()
        try:
            with os.scandir(at) as listed:
                entries = sorted(listed, key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            name = f"{below}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if depth < DEEPEST and not PASSED_OVER.match(entry.name):
                    waiting.append((entry.path, f"{name}/", depth + 1))
            elif entry.name.lower().endswith(ENDINGS) and entry.is_file():
                yield Path(entry.path), name


def _look(file: Path, below: str, names: Mapping[str, str]) -> Dump | None:
    try:
        with open(file, "rb") as stream:
            head = stream.read(HEAD)
    except OSError:
        return None
    if not head.strip():
        return None
    for layout, module in layouts().items():
        if module.sniff(file.name, head, names):
            return _dump(file, below, layout, head)
    return None


def _dump(file: Path, below: str, layout: str, head: bytes) -> Dump:
    place = _place(below, layout, head)
    trainer = place.trainer if place else ""
    split = "eval" if place and place.eval else split_in(below)
    dump = Dump(file, layout, trainer, None, split)
    return replace(dump, step=_step(dump, below))


def _place(below: str, layout: str, head: bytes) -> Place | None:
    for place in places():
        if place.layout == layout and place.path.search(below):
            if all(f'"{key}"'.encode() in head for key in place.keys):
                return place
    return None


def _step(dump: Dump, below: str) -> int | None:
    for place in places():
        if place.trainer == dump.trainer and (found := place.path.search(below)):
            step = found.groupdict().get("step")
            return int(step) if step else None
    return step_in(below.rsplit("/", 1)[-1])
