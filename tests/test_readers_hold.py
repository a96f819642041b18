"""Whatever happened to a log, reading it never crashes and never gives a number that was not logged.

KLINIC_EXAMPLES=10000 tries that many damaged logs a format; by default a few.
"""

from __future__ import annotations

import contextlib
import json
import os
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klinic.errors import KlinicError
from klinic.read import read_all

EXAMPLES = int(os.environ.get("KLINIC_EXAMPLES", "25"))
KEYS = ("reward", "entropy", "kl", "grad_norm")
Row = tuple[int, dict[str, float]]


def spelled(value: float) -> str:
    return repr(value)


def pairs(rows: list[Row]) -> str:
    return "".join(
        f"[{s:4d}] " + " ".join(f"{k}={spelled(v)}" for k, v in row.items()) + "\n"
        for s, row in rows
    )


def dashes(rows: list[Row]) -> str:
    return "".join(
        f"(TaskRunner pid=7) step:{s} - "
        + " - ".join(f"{k}:{spelled(v)}" for k, v in row.items())
        + "\n"
        for s, row in rows
    )


def dictionaries(rows: list[Row]) -> str:
    return "".join(f"step {s}: {row!r}\n" for s, row in rows)


def bars(rows: list[Row]) -> str:
    return "".join(
        f"Step {s} | " + " | ".join(f"{k} {spelled(v)}" for k, v in row.items()) + "\n"
        for s, row in rows
    )


def jsonl(rows: list[Row]) -> str:
    return "".join(json.dumps({"step": s, **row}) + "\n" for s, row in rows)


def state(rows: list[Row]) -> str:
    return json.dumps({"log_history": [{"step": s, **row} for s, row in rows]}, indent=1)


def table(rows: list[Row]) -> str:
    return (
        ",".join(("step", *KEYS))
        + "\n"
        + "".join(
            ",".join((str(s), *(spelled(row[k]) if k in row else "" for k in KEYS))) + "\n"
            for s, row in rows
        )
    )


def long_table(rows: list[Row]) -> str:
    return "step,key,value\n" + "".join(
        f"{s},{k},{spelled(v)}\n" for s, row in rows for k, v in row.items()
    )


def panel(rows: list[Row]) -> str:
    lines = "".join(
        f"========================= Step {s}/99 =========================\n📊 Training Results:\n"
        + "".join(f"• {k}: {spelled(v)}\n" for k, v in row.items())
        for s, row in rows
    )
    return lines


def notebook(rows: list[Row]) -> str:
    cell = {
        "cell_type": "code",
        "source": [],
        "outputs": [{"output_type": "stream", "name": "stdout", "text": dictionaries(rows)}],
    }
    return json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}})


FORMATS = {
    "pairs.log": pairs,
    "dashes.log": dashes,
    "dictionaries.log": dictionaries,
    "bars.log": bars,
    "metrics.jsonl": jsonl,
    "trainer_state.json": state,
    "table.csv": table,
    "long.csv": long_table,
    "panel.log": panel,
    "notebook.ipynb": notebook,
}
numbers = st.one_of(
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: float(f"{v:.6g}")),
    st.sampled_from([0.0, float("nan"), float("inf"), 1e-12, -0.0]),
)
row = st.dictionaries(st.sampled_from(KEYS), numbers, min_size=2)
steps = st.lists(st.integers(0, 500), min_size=3, max_size=25)


@st.composite
def logs(draw):
    order = draw(st.sampled_from(("rising", "any", "gaps")))
    at = draw(steps)
    at = sorted(set(at)) if order == "rising" else sorted(at) if order == "gaps" else at
    return [(s, draw(row)) for s in at]


damage = st.one_of(
    st.tuples(st.just("none"), st.just(0.0), st.just(b"")),
    st.tuples(st.just("cut"), st.floats(0, 1), st.just(b"")),
    st.tuples(st.just("line"), st.floats(0, 1), st.binary(max_size=80)),
    st.tuples(st.just("head"), st.floats(0, 1), st.just(b"")),
)


def damaged(text: str, kind: str, at: float, extra: bytes) -> bytes:
    data = text.encode()
    place = int(at * len(data))
    if kind == "cut":
        return data[:place]
    if kind == "line":  # something else was written between two lines
        place = data.rfind(b"\n", 0, place) + 1
        return data[:place] + extra.replace(b"\n", b" ") + b"\n" + data[place:]
    if kind == "head":
        return data[data.find(b"\n", place) + 1 :]
    return data


@pytest.mark.parametrize("name", FORMATS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=logs(), how=damage)
def test_no_damage_makes_a_number_up(tmp_path, name, rows, how):
    path = tmp_path / name
    path.write_bytes(damaged(FORMATS[name](rows), *how))
    try:
        runs = read_all(path)
    except KlinicError:
        return
    if how[0] == "line" and any(c in b"0123456789" for c in how[2]):
        return  # what was written between may be a row of its own
    written = {key: [r[key] for _, r in rows if key in r] for key in KEYS}
    for run in runs:
        for curve in run.curves.values():
            key = curve.metric.source_key
            if key not in written or curve.metric.derived_from or curve.metric.conversion:
                continue
            finite = [v for v in written[key] if v == v and abs(v) < 1e300]
            if not finite:
                continue
            once = len({s for s, _ in rows}) == len(rows)
            low, high = min(finite), max(finite)
            for value in curve.values:
                if value != value or abs(value) > 1e300:
                    continue
                # Rows of one step are averaged; else each number is one of those written.
                assert (
                    any(value == v for v in finite)
                    if once
                    else low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high)
                ), (key, value)


@pytest.mark.parametrize(
    "name", [*FORMATS, "events.out.tfevents.1", "run-x.wandb", "x.swanlab", "x.db", "x.parquet"]
)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.binary(max_size=600), seed=st.integers(0, 99))
def test_random_bytes_are_an_error_or_nothing(tmp_path, name, data, seed):
    rnd = random.Random(seed)
    magic = rnd.choice(
        [b"", b"SQLite format 3\0", b":W&B\xe1\xbe\x00", b"PAR1", b":SWL\xd6\xe1\x02", b"{", b"["]
    )
    path = tmp_path / name
    path.write_bytes(magic + data)
    with contextlib.suppress(KlinicError):
        read_all(path)
