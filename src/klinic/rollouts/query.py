"""Questions to the samples: the best of a step, a group, what surrounds an onset, what two steps differ in, a search."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage, UnreadableInput, did_you_mean
from klinic.rollouts.store import Store
from klinic.rollouts.words import words_of

SHOWN = (
    "row",
    "split",
    "step",
    "group",
    "prompt",
    "completion",
    "reward",
    "reward_parts",
    "acc",
    "right",
    "length",
    "truncated",
    "answer",
    "task",
    "error",
)
ORDERS = (
    "reward",
    "acc",
    "length",
    "advantage",
    "repeated",
    "echoed",
    "listed",
    "foreign",
    "squeezed",
)
BEST = 64  # of the best-paid samples of a step are set against those of another (our choice)
PHRASE = (1, 2, 3)  # words of a phrase
DIFFERENT = tuple(
    [
        "reward",
        "acc",
        "right",
        "length",
        "words",
        "stated",
        "empty",
        "echoed",
        "trailing",
        "unread",
        "repeated",
        "refusal",
        "flattery",
        "truncated",
    ]
)
TOLD = 15  # phrases told
GROWN = 0.15  # of the samples by which a phrase must have spread to be told (our choice)


@dataclass(frozen=True, slots=True)
class Difference:
    """What the best answers of one step do that those of another did not. Shares are of the best-paid samples."""

    before: int
    after: int
    counts: tuple[int, int]
    measures: list[tuple[str, float, float]] = field(default_factory=list)
    phrases: list[tuple[str, float, float]] = field(default_factory=list)
    gone: list[tuple[str, float, float]] = field(default_factory=list)


def samples(
    store: Store, where: str, given: Sequence[Any], order: str, count: int
) -> list[dict[str, Any]]:
    """Rows as mappings. where, order: SQL of our own making; given: the values of its question marks."""
    if not store.index.parts:
        return []
    with store.connect() as connection:
        found = connection.execute(
            f"SELECT {', '.join(map(_name, SHOWN))} FROM {store.table} WHERE {where} ORDER BY {order} LIMIT {int(count)}",
            list(given),
        )
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _name(column: str) -> str:
    return f'"{column}"'  # some are words of SQL


def top(
    store: Store, count: int, by: str, step: int | None, worst: bool = False
) -> list[dict[str, Any]]:
    """The samples that lead by a measure or a part of the reward, of one step or of the last one.

    Raises BadUsage for an unknown measure or step.
    """
    step = _step(store, step)
    if by in ORDERS:
        column, given = _name(by), []
    else:
        parts = sorted({name for s in store.steps.values() for name in s.get("parts", {})})
        if by not in parts:
            known = [*ORDERS, *parts]
            raise BadUsage(
                f"unknown measure {by!r}",
                "--by",
                did_you_mean(by, known) or f"known: {', '.join(known)}",
            )
        column, given = "reward_parts[?]", [by]
    direction = "ASC" if worst else "DESC"
    # NaN would lead a descending order.
    order = f"CASE WHEN isnan({column}) THEN 1 ELSE 0 END, {column} {direction} NULLS LAST, row"
    return samples(store, "step = ?", [step, *given, *given], order, count)


def group(store: Store, name: str) -> list[dict[str, Any]]:
    """The samples of a group, named "STEP/GROUP"; a sample's name gives its group. Raises BadUsage where there is none."""
    step, _, rest = name.partition("/")
    if not re.fullmatch(r"-?\d+", step) or not rest:
        raise BadUsage(f"no group {name!r}", "--group", "a group is named STEP/GROUP, e.g. 190/1")
    known = rest.rsplit("/", 1)[0]
    for tried in dict.fromkeys((rest, known)):
        found = samples(
            store,
            'step = ? AND ("group" = ? OR ("group" = \'\' AND prompt_id = ?))',
            [int(step), tried, tried],
            "row",
            1000,
        )
        if found:
            return found
    raise BadUsage(f"no group {name!r}", "--group", "klinic rollouts RUN --top 10 names groups")


def around(store: Store, onset: int, count: int) -> list[dict[str, Any]]:
    """The best-paid samples of the last sampled step before an onset and of the first from it on."""
    steps = sorted(store.steps)
    before, after = [s for s in steps if s < onset], [s for s in steps if s >= onset]
    shown = before[-1:] + after[:1]
    return [row for step in shown for row in top(store, count, "reward", step)]


def search(store: Store, text: str, count: int) -> list[dict[str, Any]]:
    """The samples whose completion holds a text, upper and lower case alike, the latest first."""
    return samples(store, "contains(lower(completion), lower(?))", [text], "step DESC, row", count)


def difference(store: Store, before: int, after: int) -> Difference:
    """What the best-paid answers of step ``after`` do that those of ``before`` did not: measures, and phrases."""
    sides = [top(store, BEST, "reward", step) for step in (before, after)]
    spread = [_phrases([row["completion"] for row in side]) for side in sides]
    changed = {
        phrase: (spread[0].get(phrase, 0.0), spread[1].get(phrase, 0.0))
        for phrase in spread[0].keys() | spread[1].keys()
        if abs(spread[1].get(phrase, 0.0) - spread[0].get(phrase, 0.0)) >= GROWN
    }
    order = sorted(changed, key=lambda p: (-(changed[p][1] - changed[p][0]), -len(p)))
    told, gone = (
        _told(order, changed),
        _told(list(reversed(order)), {p: (b, a) for p, (a, b) in changed.items()}),
    )
    measures = []
    for name in DIFFERENT:
        old, new = (store.steps[_step(store, s)]["mean"].get(name) for s in (before, after))
        if old is not None and new is not None:
            measures.append((name, old, new))
    return Difference(
        before,
        after,
        (len(sides[0]), len(sides[1])),
        measures,
        told,
        [(p, a, b) for p, b, a in gone],
    )


def export(store: Store, place: Path, redacted: bool) -> int:
    """Write all samples to a JSON Lines or Parquet file, by its ending. redacted: texts are left out, and digests stand for prompts.

    Returns the number of rows. Raises UnreadableInput where it cannot be written.
    """
    import duckdb

    kinds = {".jsonl": "FORMAT json", ".parquet": "FORMAT parquet, COMPRESSION zstd"}
    if place.suffix not in kinds:
        raise BadUsage(
            f"unknown ending {place.suffix!r}",
            str(place),
            "export to a file that ends in .jsonl or .parquet",
        )
    left_out = "EXCLUDE (prompt, completion, answer, error)" if redacted else ""
    temporary = place.with_name(f".{place.name}.part")
    try:
        with store.connect() as connection:
            connection.execute(
                f"COPY (SELECT * {left_out} FROM {store.table} ORDER BY row) TO '{str(temporary).replace(chr(39), chr(39) * 2)}' ({kinds[place.suffix]})"
            )
        temporary.replace(place)
    except (duckdb.Error, OSError):
        temporary.unlink(missing_ok=True)
        raise UnreadableInput(
            "cannot be written", str(place), "name a file in a folder that exists"
        ) from None
    return sum(entry.rows for entry in store.index.dumps.values())


def _step(store: Store, step: int | None) -> int:
    known = sorted(store.steps)
    if not known:
        raise UnreadableInput("no samples", str(store.path), "name a folder that holds rollouts")
    if step is None:
        return known[-1]
    if step not in store.steps:
        near = min(known, key=lambda s: abs(s - step))
        raise BadUsage(
            f"no samples of step {step}", "--step", f"the nearest step with samples is {near}"
        )
    return step


def _phrases(texts: Sequence[str]) -> dict[str, float]:
    """Share of the texts that hold a phrase; numbers are one word."""
    found: Counter[str] = Counter()
    for text in texts:
        words = ["0" if w.isdigit() else w.lower() for w in words_of(text)]
        mine = {
            " ".join(gram)
            for n in PHRASE
            for gram in zip(*(words[i:] for i in range(n)), strict=False)
            if any(w.isalpha() or w.startswith("<") for w in gram)
        }
        found.update(mine)
    return {phrase: count / max(1, len(texts)) for phrase, count in found.items()}


def _told(
    order: Sequence[str], changed: dict[str, tuple[float, float]]
) -> list[tuple[str, float, float]]:
    """The phrases that spread most; one inside another that spread as much is not told twice."""
    told: list[tuple[str, float, float]] = []
    for phrase in order:
        before, after = changed[phrase]
        if after - before < GROWN or len(told) >= TOLD:
            break
        if not any(phrase in longer and abs(a - after) < 0.05 for longer, _, a in told):
            told.append((phrase, before, after))
    return told


def as_rows(found: Sequence[dict[str, Any]]) -> str:
    """JSON Lines of rows; what is not known is null."""
    return "".join(json.dumps(_plain(row), ensure_ascii=False) + "\n" for row in found)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, float) and value != value:
        return None
    return value
