"""The samples behind a curve: what the policy wrote, and what the reward paid for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klinic.rollouts.dump import Dump
    from klinic.run import Run

SMALL = (
    4 * 2**20
)  # bytes of plain text that a diagnosis reads on the way, in a fraction of a second
PLAIN = (".jsonl", ".ndjson", ".json", ".csv")
UNREAD = "samples-unread"  # a note of the run: there are samples that were not looked at


def beside(runs: Sequence[Run], path: str | Path) -> list[Run]:
    """The runs of a path, each with what its samples say.

    Small dumps are read on the way. Of larger ones what ``klinic rollouts`` has taken in before is used; without that the
    run notes that they were not looked at. Samples that cannot be read do no harm.
    """
    place = Path(path)
    if not runs or not place.is_dir():
        return list(runs)
    if len(runs) == 1:
        return [_with_samples(runs[0], place)]
    folders = [Path(run.path).parent for run in runs]
    return [
        _with_samples(run, folder) if folders.count(folder) == 1 and folder.is_dir() else run
        for run, folder in zip(runs, folders, strict=True)
    ]


def _with_samples(run: Run, folder: Path) -> Run:
    from klinic.errors import KlinicError
    from klinic.rollouts.find import find

    try:
        dumps = find(folder)
        if not dumps:
            return run
        steps = _known(dumps, folder)
    except (KlinicError, OSError):
        return run
    if not steps:
        return replace(
            run, notes=(*run.notes, UNREAD), holds={**run.holds, "sample files": len(dumps)}
        )
    from klinic.rollouts.join import joined

    return joined(run, steps, tuple(str(dump.path) for dump in dumps))


def _known(dumps: Sequence[Dump], folder: Path) -> dict[int, dict[str, object]]:
    if all(dump.path.suffix in PLAIN for dump in dumps):
        if sum(dump.path.stat().st_size for dump in dumps) <= SMALL:
            from klinic.rollouts.gather import gather

            return gather(dumps)
    from klinic.rollouts.kept import kept_steps

    return kept_steps(folder)
