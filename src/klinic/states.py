"""Whether the states saved in a run's checkpoints tell one story.

transformers saves the whole history so far in every ``checkpoint-N/trainer_state.json``. The newest is read; an older one
that says something else was written by another run into the same folder, or the run was restarted from further back.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from klinic import sources
from klinic.errors import UnreadableInput
from klinic.folders import CHECKPOINT_LIKE
from klinic.sources.rows import Column, Reading
from klinic.trackers import STATE

COMPARED = 8  # older states at most, evenly spread: each holds the history of all before it


def compare_states(read: Reading) -> None:
    """Note in the reading of a run's newest state which older ones disagree with it, and from which step on."""
    for path in _older(Path(read.at)):
        try:
            other = sources.read_file(path, read.vocabulary)
        except UnreadableInput:
            continue  # a checkpoint that was being written when the run died
        steps = [
            step
            for key in other.columns.keys() & read.columns.keys()
            if (step := _parting(read.columns[key], other.columns[key])) is not None
        ]
        if steps:
            read.note("states-disagree", str(path), (read.at,), min(steps))


def _older(newest: Path) -> list[Path]:
    if newest.name != STATE:
        return []
    home = newest.parent.parent if CHECKPOINT_LIKE.match(newest.parent.name) else newest.parent
    found = [
        (int("".join(filter(str.isdigit, path.parent.name)) or 0), path)
        for path in home.glob(f"*/{STATE}")
        if CHECKPOINT_LIKE.match(path.parent.name) and path != newest
    ]
    return [path for _, path in sorted(found)[:: max(1, -(-len(found) // COMPARED))]]


def _parting(a: Column, b: Column) -> int | None:
    """The first step at which two columns differ, None where they agree on all that they share."""
    steps, at_a, at_b = np.intersect1d(
        np.asarray(a.steps), np.asarray(b.steps), return_indices=True
    )
    x, y = np.asarray(a.values)[at_a], np.asarray(b.values)[at_b]
    apart = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    return int(steps[np.argmax(apart)]) if apart.any() else None
