"""Describing the steps of kept samples, some at a time: what one process reads, it describes and forgets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from klinic.rollouts.gather import describe
from klinic.rollouts.kept import Described
from klinic.rollouts.measure import HASHES, NUMBERS, Columns
from klinic.rollouts.rollout import Rollout

if TYPE_CHECKING:
    import duckdb

STEP_ROWS = 32768  # rows that are described in one go
TEXTS = ("step", "prompt_id", "group", "completion", "task", "reward_parts")

Portion = tuple[Path, str, str, Sequence[int]]  # cache folder, table, split, steps


@contextmanager
def connect(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose memory is bounded; what does not fit goes to the folder."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": min(2, os.cpu_count() or 1),
        "memory_limit": "1GB",
        "temp_directory": str(folder / "spill"),
    }
    with duckdb.connect(":memory:", config=config) as connection:
        yield connection


def in_portions(counts: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Steps in order, so many together as hold STEP_ROWS rows. counts: steps and their rows."""
    portion: list[int] = []
    rows = 0
    for step, count in counts:
        if portion and rows + count > STEP_ROWS:
            yield portion
            portion, rows = [], 0
        portion.append(step)
        rows += count
    if portion:
        yield portion


def described(portion: Portion) -> Described:
    """The descriptions of the steps of a portion."""
    folder, table, split, steps = portion
    wanted = ", ".join(map(str, steps))
    with connect(folder) as connection:
        found = connection.execute(
            f"SELECT * FROM {table} WHERE split = '{split}' AND step IN ({wanted}) ORDER BY row"
        ).fetchnumpy()
    rows = [
        Rollout(
            step=int(step),
            prompt_id=prompt_id,
            group=group,
            completion=completion,
            task=task,
            reward_parts=dict(zip(parts["key"], parts["value"], strict=True))
            if "key" in parts
            else parts,
        )
        for step, prompt_id, group, completion, task, parts in zip(
            *(found[name] for name in TEXTS), strict=True
        )
    ]
    columns: Columns = {}
    for name in NUMBERS:
        values = found[name]
        if isinstance(values, np.ma.MaskedArray):
            values = np.ma.filled(values.astype(float), np.nan)
        if values.dtype == object:
            values = np.array([np.nan if v is None else float(v) for v in values])
        columns[name] = values.astype(np.float64)
    columns |= {f"hash_{name}": found[f"hash_{name}"].astype(np.int64) for name in HASHES}
    return describe(rows, columns, numbers=found["row"].tolist())
