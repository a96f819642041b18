"""Which column of a Parquet table is what: the steps, the metrics of a wide table, the key and the value of a long one.

Neptune's exporter writes long tables (its model.py: run_id, attribute_path, attribute_type, step, timestamp, float_value, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from klinic.errors import UnreadableInput
from klinic.sources.jsonl import SAMPLE_KEYS
from klinic.sources.rows import STEP_KEYS
from klinic.sources.table import LONG_KEYS

WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
REAL = {"FLOAT", "DOUBLE", "HUGEINT", "UHUGEINT"}
RUN_KEYS = ("run_id", "run_uuid", "run_name", "run")
NAME_KEYS = ("run_name", "run")
TIME_KEYS = ("timestamp", "_timestamp", "time", "wall time", "wall_time")
PATH_KEYS = ("attribute_path", *sorted(LONG_KEYS))
VALUE_KEYS = ("float_value", "value")
NO_METRICS = {"id", "index", "__index_level_0__", "_runtime", *TIME_KEYS, *STEP_KEYS}


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of columns. key: of a long table, whose ``numbers`` are the one column of values. kind: Neptune's sort of value."""

    step: str
    whole_steps: bool
    numbers: tuple[str, ...]
    key: str | None
    run: str | None
    name: str | None
    time: str | None
    kind: str | None


def holds_samples(kinds: Mapping[str, str]) -> bool:
    """Whether it is a table of rollouts: a column of prompts or completions that are no numbers. kinds: column -> SQL type."""
    return any(
        name.strip().lower() in SAMPLE_KEYS and not is_number(kind) for name, kind in kinds.items()
    )


def layout(kinds: Mapping[str, str], at: str) -> Layout:
    """Find the columns. kinds: column -> SQL type. Raises UnreadableInput where none holds steps."""
    by_word = {name.strip().lower(): name for name in reversed(list(kinds))}

    def first(words: tuple[str, ...], numeric: bool | None = None) -> str | None:
        names = (by_word[word] for word in words if word in by_word)
        return next((n for n in names if numeric is None or is_number(kinds[n]) == numeric), None)

    step = first(STEP_KEYS, numeric=True)
    if step is None:
        raise UnreadableInput(
            "a Parquet table without a column of steps",
            at,
            "call it step; beside it a column a metric, or the columns key and value",
        )
    key, value, run = (
        first(PATH_KEYS, numeric=False),
        first(VALUE_KEYS, numeric=True),
        first(RUN_KEYS),
    )
    time = first(TIME_KEYS)
    long = key is not None and value is not None
    wide = tuple(
        name
        for name, kind in kinds.items()
        if is_number(kind) and name not in (step, run) and name.strip().lower() not in NO_METRICS
    )
    return Layout(
        step=step,
        whole_steps=kinds[step] in WHOLE,
        numbers=(value,) if long and value is not None else wide,
        key=key if long else None,
        run=run,
        name=first(NAME_KEYS),
        time=time if time is not None and kinds[time].startswith("TIMESTAMP") else None,
        kind=by_word.get("attribute_type") if long else None,
    )


def is_number(kind: str) -> bool:
    """Whether an SQL type is one of numbers."""
    return kind in WHOLE or kind in REAL or kind.startswith("DECIMAL")
