"""Rollouts packed into batches of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klinic.rollouts.dump import BATCH_BYTES, BATCH_ROWS, Batch
from klinic.rollouts.rollout import Rollout


def packed(made: Iterable[list[Rollout]]) -> Iterator[Batch]:
    """Batches of a file that is taken whole: ``until`` is 0 until the last one, which has 1. An empty list is a skipped row."""
    batch, size = Batch(), 0
    for rows in made:
        batch.rows += rows
        batch.skipped += not rows
        size += sum(len(r.prompt) + len(r.completion) for r in rows)
        if len(batch.rows) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = Batch(), 0
    batch.until = 1
    yield batch
