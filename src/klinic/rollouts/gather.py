"""From rows to the descriptions of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from klinic.rollouts.dump import Dump
from klinic.rollouts.formats import read
from klinic.rollouts.kept import Described
from klinic.rollouts.measure import Columns, measure, signatures
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.steps import SAMPLED, of_step, spread


def describe(
    rows: Sequence[Rollout], columns: Columns, numbers: Sequence[int] | None = None
) -> Described:
    """The steps of rows that were measured. columns: (len(rows),) each. numbers: of the rows, 0, 1 and so on by default."""
    numbers = range(len(rows)) if numbers is None else numbers
    by_step: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        by_step.setdefault(row.step, []).append(i)
    return {
        step: _step(
            [rows[i] for i in at], {n: c[at] for n, c in columns.items()}, [numbers[i] for i in at]
        )
        for step, at in sorted(by_step.items())
    }


def _step(rows: Sequence[Rollout], columns: Columns, numbers: Sequence[int]) -> dict[str, Any]:
    looked_at = spread(len(rows), SAMPLED).tolist()
    made = dict(zip(looked_at, signatures([rows[i] for i in looked_at]), strict=True))
    parts = sorted({name for row in rows for name in row.reward_parts})
    return of_step(
        columns,
        # Samples that say neither their group nor their prompt were compared with nobody that is known.
        [
            row.group or row.prompt_id or f"#{number}"
            for row, number in zip(rows, numbers, strict=True)
        ],
        [row.task for row in rows],
        [made.get(i) for i in range(len(rows))],
        {i: rows[i].completion for i in looked_at},
        {
            name: np.array([row.reward_parts.get(name, np.nan) for row in rows], dtype=float)
            for name in parts
        },
        [sample_name(row, number) for row, number in zip(rows, numbers, strict=True)],
    )


def sample_name(row: Rollout, number: int) -> str:
    """What a sample is called: its step, its group, its number among all rows."""
    return f"{row.step}/{row.group or row.prompt_id}/{number}"


def of_training(dumps: Sequence[Dump]) -> list[Dump]:
    """The dumps of training samples; those of evaluations where there are no others."""
    return [d for d in dumps if d.split == "train"] or list(dumps)


def gather(dumps: Sequence[Dump], names: Mapping[str, str] | None = None) -> Described:
    """Read, measure and describe dumps that fit into memory. Raises UnreadableInput as ``formats.read`` does."""
    rows = [
        row for dump in of_training(dumps) for batch in read(dump, 0, names) for row in batch.rows
    ]
    return describe(rows, measure(rows)) if rows else {}
