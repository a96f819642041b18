"""The user's data: prompts, right answers, and completions that were labelled, under whatever names they carry."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from klinic.audit.answers import Answer, read_answer
from klinic.errors import BadUsage, MissingExtra, UnreadableInput, did_you_mean

SCAN = 2000  # rows read of a file (our choice)
LISTS = (
    "data",
    "rows",
    "train",
    "test",
    "examples",
    "samples",
)  # under which a JSON object holds its rows
# verl, TRL, ms-swift, slime, OpenRLHF and the public data sets; the first that a row has.
NAMES: dict[str, tuple[str, ...]] = {
    "prompt": ("prompt", "prompts", "question", "problem", "query", "input", "instruction", "messages", "context_messages"),
    "answer": ("answer", "ground_truth", "reward_model.ground_truth", "gold", "gold_answer", "final_answer", "target", "reference",
               "reference_answer", "expected_answer", "correct_answer", "solution", "label", "gts", "gt", "extra_info.answer"),
    "completion": ("completion", "completions", "response", "output", "generation", "solution_str", "model_output", "prediction"),
    "right": ("right", "correct", "is_correct", "is_right", "acc", "label", "labels", "verdict"),
}  # fmt: skip
YES, NO = {"true", "yes", "right", "correct", "1", "1.0"}, {"false", "no", "wrong", "incorrect", "0", "0.0"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One row. given: the answer as the data hold it, handed to the function; answer: what a completion would state."""

    number: int
    prompt: Any
    given: Any
    answer: Answer | None
    columns: Mapping[str, Any] = field(default_factory=dict)
    completion: Any = None
    right: bool | None = None

    @property
    def text(self) -> str:
        """The question as text: of messages, the user's last."""
        if isinstance(self.prompt, list):
            said = [m for m in self.prompt if isinstance(m, Mapping)]
            users = [m for m in said if m.get("role") == "user"] or said
            return str(users[-1].get("content", "")) if users else ""
        return str(self.prompt or "")


@dataclass(frozen=True, slots=True)
class Data:
    """rows: distinct by prompt and answer. labelled: those with a completion and a verdict. keys: which column is what."""

    rows: tuple[Row, ...]
    labelled: tuple[Row, ...]
    keys: Mapping[str, str]

    @property
    def chat(self) -> bool:
        """Prompts are conversations."""
        return any(isinstance(row.prompt, list) for row in self.rows[:1])


def read_rows(path: Path, mapping: Mapping[str, str]) -> Data:
    """Read the first rows of JSONL, JSON, CSV, TSV or Parquet. mapping: prompt, answer, completion or right to a column.

    Raises UnreadableInput, MissingExtra (Parquet without DuckDB), BadUsage for a name that is none.
    """
    for name in mapping:
        if name not in NAMES:
            raise BadUsage(f"unknown column {name!r}", "--map",
                           did_you_mean(name, NAMES) or f"known: {', '.join(NAMES)}")  # fmt: skip
    if not path.is_file():
        raise UnreadableInput("no such file or folder", str(path), "check the path")
    return as_data(_table(path), mapping, str(path))


def as_data(table: Sequence[Any], mapping: Mapping[str, str], at: str) -> Data:
    """Rows of plain dicts, their columns found by name. Raises UnreadableInput where there is no prompt or no answer."""
    kept = [row for row in table if isinstance(row, dict)]
    if not kept:
        raise UnreadableInput(
            "it holds no rows", at, "a row is an object with a prompt and its right answer"
        )
    keys = {role: key for role in NAMES if (key := _key(kept, role, mapping, at))}
    if "completion" not in keys or keys.get("right") == keys.get("answer"):
        keys.pop("right", None)
        if _labels(kept, keys):
            keys["right"] = keys.pop("answer")
    if "right" not in keys and "answer" not in keys:
        known = ", ".join(list(kept[0])[:12])
        raise UnreadableInput(
            f"no column of right answers among {known}",
            at,
            "name it: --map answer=COLUMN, or label completions: columns completion and right",
        )
    rows = [_row(i, row, keys) for i, row in enumerate(kept, 1)]
    distinct = {repr((row.prompt, row.given)): row for row in reversed(rows)}
    ordered = sorted(distinct.values(), key=lambda row: row.number)
    labelled = [row for row in rows if row.completion is not None and row.right is not None]
    return Data(tuple(ordered), tuple(labelled), keys)


def _labels(kept: list[dict[str, Any]], keys: Mapping[str, str]) -> bool:
    """Whether what looks like the answer is a verdict: label: true."""
    if "completion" not in keys or keys.get("answer") not in ("label", "labels"):
        return False
    return all(isinstance(_at(row, keys["answer"]), bool) for row in kept)


def _key(kept: list[dict[str, Any]], role: str, mapping: Mapping[str, str], at: str) -> str:
    if role in mapping:
        if all(_at(row, mapping[role]) is None for row in kept):
            known = list(dict.fromkeys(key for row in kept for key in row))
            raise BadUsage(f"there is no column {mapping[role]!r}", at,
                           did_you_mean(mapping[role], known) or f"known: {', '.join(known[:12])}")  # fmt: skip
        return mapping[role]
    return next((n for n in NAMES[role] if any(_at(row, n) is not None for row in kept)), "")


def _at(row: Mapping[str, Any], key: str) -> Any:
    if key in row:
        return row[key]
    first, _, rest = key.partition(".")
    inner = row.get(first) if rest else None
    return _at(inner, rest) if isinstance(inner, Mapping) else None


def _row(number: int, row: dict[str, Any], keys: Mapping[str, str]) -> Row:
    def of(role: str) -> Any:
        return _at(row, keys[role]) if role in keys else None

    given = of("answer")
    skipped = {keys.get(role) for role in ("prompt", "completion", "right")}
    columns = {key: value for key, value in row.items() if key not in skipped}
    return Row(number, of("prompt"), given, read_answer(given), columns, text_in(of("completion")), _verdict(of("right")))  # fmt: skip


def text_in(completion: Any) -> str | None:
    """A completion as text: of messages, the assistant's last."""
    if isinstance(completion, list) and completion and isinstance(completion[-1], Mapping):
        completion = completion[-1].get("content")
    return None if completion is None else str(completion)


def _verdict(value: Any) -> bool | None:
    if isinstance(value, bool | int | float):
        return bool(value >= 0.5)
    word = str(value).strip().lower()
    return True if word in YES else False if word in NO else None


def _table(path: Path) -> list[Any]:
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            return _parquet(path)
        if kind in (".csv", ".tsv"):
            with path.open(encoding="utf-8-sig", newline="") as stream:
                rows = csv.DictReader(stream, delimiter="\t" if kind == ".tsv" else ",")
                return [row for _, row in zip(range(SCAN), rows, strict=False)]
        if kind == ".json":
            held = msgspec.json.decode(path.read_bytes())
            if isinstance(held, dict):
                held = next((held[k] for k in LISTS if isinstance(held.get(k), list)), [held])
            return list(held)[:SCAN]
        with path.open("rb") as stream:
            lines = [line for _, line in zip(range(SCAN), stream, strict=False)]
        return [msgspec.json.decode(line) for line in lines if line.strip()]
    except OSError as trouble:
        raise UnreadableInput(f"cannot be read ({trouble.strerror})", str(path), "check the path") from None  # fmt: skip
    except (msgspec.DecodeError, UnicodeDecodeError, csv.Error) as trouble:
        raise UnreadableInput(
            f"cannot be read ({trouble})",
            str(path),
            "the data are JSONL, JSON, CSV, TSV or Parquet",
        ) from None


def _parquet(path: Path) -> list[Any]:
    try:
        import duckdb
    except ImportError:
        raise MissingExtra(
            "a Parquet file needs DuckDB to be read", str(path), "pip install 'klinic[parquet]'"
        ) from None
    try:
        with duckdb.connect() as base:
            found = base.execute(f"SELECT * FROM read_parquet(?) LIMIT {SCAN}", [str(path)])
            names = [one[0] for one in found.description or []]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    except duckdb.Error as trouble:
        raise UnreadableInput(
            f"cannot be read ({str(trouble).partition(chr(10))[0][:120]})",
            str(path),
            "the data are JSONL, JSON, CSV, TSV or Parquet",
        ) from None
