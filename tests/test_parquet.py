"""Parquet tables of metrics: wide, long, of several runs, Neptune's; rollouts and what is no metrics table; damage."""

from __future__ import annotations

import builtins
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klinic import sources
from klinic.cli import klinic as group
from klinic.errors import KlinicError, MissingExtra, UnreadableInput
from klinic.read import read, read_all

duckdb = pytest.importorskip("duckdb", reason="the parquet extra is not installed")


def write(path, columns, rows):
    """columns: "name TYPE, ..."; rows: tuples."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        db.execute(f"CREATE TABLE t ({columns})")
        if rows:
            db.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        quoted = str(path).replace("'", "''")
        db.execute(f"COPY t TO '{quoted}' (FORMAT parquet)")
    return path


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def test_a_wide_table(tmp_path):
    rows = [(i, i / 10, None if i % 2 else 0.5, "text", True, [1.0], i / 4) for i in range(40)]
    rows[3] = (3, math.nan, math.inf, "", False, [], 0.75)
    path = write(
        tmp_path / "it's [1].parquet",
        'Step INTEGER, "train/reward" DOUBLE, kl FLOAT, note VARCHAR, done BOOLEAN, list DOUBLE[], entropy DECIMAL(18, 6)',
        rows,
    )
    run = read(path)
    assert run.name == "it's [1]"
    reward = curve(run, "train/reward").values
    assert math.isnan(reward[3]) and reward[4] == 0.4 and len(reward) == 40
    assert curve(run, "kl").steps.tolist() == sorted([3, *range(0, 40, 2)])
    assert curve(run, "entropy").values.tolist() == [i / 4 for i in range(40)]
    assert run.unread_keys == ()


def test_a_long_table_that_is_sorted_by_its_keys(tmp_path):
    rows = [
        (step, key, level + again)
        for key, level in (("entropy", 2.0), ("kl", 0.1), ("reward", 0.5))
        for first, last, again in ((0, 100, 0), (61, 80, 1))
        for step in range(first, last + 1)
    ]
    run = read(write(tmp_path / "x.parquet", "step BIGINT, key VARCHAR, value DOUBLE", rows))
    for key, level in (("kl", 0.1), ("reward", 0.5)):
        assert curve(run, key).values.tolist() == [level] * 61 + [level + 1] * 20


def test_several_runs_in_one_table(tmp_path):
    rows = [(run, i, 0.5 if run == "a" else 0.25) for i in range(30) for run in "ab"]
    path = write(tmp_path / "x.parquet", "run_name VARCHAR, step BIGINT, reward DOUBLE", rows)
    runs = {run.name: run for run in read_all(path)}
    assert runs.keys() == {"a", "b"} and set(curve(runs["b"], "reward").values) == {0.25}
    (tmp_path / "x.parquet").unlink()
    write(tmp_path / "y.parquet", "run_name VARCHAR, step BIGINT, reward DOUBLE", rows[::2])
    assert read(tmp_path).name == "a"


NEPTUNE = (
    "project_id VARCHAR, run_id VARCHAR, attribute_path VARCHAR, attribute_type VARCHAR, step DECIMAL(18, 6),"
    " timestamp TIMESTAMP_MS, int_value BIGINT, float_value DOUBLE, string_value VARCHAR, bool_value BOOLEAN"
)


def test_what_neptunes_exporter_writes(tmp_path):
    def series(run, path, steps, value):
        return [
            ("p", run, path, "float_series", step, "2026-01-01", None, value, None, None)
            for step in steps
        ]

    def once(run, path, kind, **value):
        kept = [value.get(name) for name in ("int", "float", "string", "bool")]
        return [("p", run, path, kind, None, None, *kept)]

    first = series("R-1", "train/reward", range(50), 0.5) + series(
        "R-2", "train/reward", range(20), 0.25
    )
    first += once("R-1", "sys/name", "string", string="mine") + once(
        "R-1", "args/learning_rate", "float", float=0.5
    )
    first += once("R-1", "args/num_generations", "int", int=8)
    write(tmp_path / "part_0.parquet", NEPTUNE, first)
    write(
        tmp_path / "part_1.parquet",
        NEPTUNE,
        series("R-1", "train/reward", range(50, 80), 0.75) + series("R-1", "kl", range(80), 0.1),
    )
    runs = {run.name: run for run in read_all(tmp_path)}
    assert runs.keys() == {"mine", "R-2"}
    assert curve(runs["mine"], "train/reward").values.tolist() == [0.5] * 50 + [0.75] * 30
    assert runs["mine"].setting("lr") == 0.5 and runs["mine"].setting("group_size") == 8
    assert runs["R-2"].setting("lr") is None


def test_steps_that_are_no_whole_numbers_are_counted(tmp_path):
    run = read(
        write(
            tmp_path / "x.parquet",
            "step DOUBLE, reward DOUBLE",
            [(i / 4, i / 8) for i in range(20)],
        )
    )
    assert curve(run, "reward").steps.tolist() == list(range(1, 21)) and "counted" in run.notes


def test_rollouts_are_no_metrics(tmp_path):
    columns = "step BIGINT, prompt VARCHAR, completion VARCHAR, reward DOUBLE"
    path = write(tmp_path / "x.parquet", columns, [(i, "p", "c", 0.5) for i in range(30)])
    reading = sources.read_file(path)
    assert reading.rollouts and reading.holds["samples"] == 30 and not reading.columns
    from click.testing import CliRunner

    assert "30 samples" in CliRunner().invoke(group, ["diagnose", str(path), "--lang", "en"]).output
    (tmp_path / "train.log").write_text(
        "".join(f"[{i}] reward=0.5 kl=0.01\n" for i in range(1, 41))
    )
    assert read(tmp_path).logged == 40


def test_what_has_no_steps_says_how_to_name_them(tmp_path):
    path = write(tmp_path / "x.parquet", "reward DOUBLE, label BIGINT", [(0.5, 1)] * 20)
    with pytest.raises(UnreadableInput, match="without a column of steps") as trouble:
        read(path)
    assert "call it step" in trouble.value.hint


def test_without_duckdb_the_error_names_the_command(tmp_path, monkeypatch):
    path = write(
        tmp_path / "x.parquet", "step BIGINT, reward DOUBLE", [(i, 0.5) for i in range(20)]
    )
    found = builtins.__import__

    def missing(name, *rest, **named):
        if name == "duckdb":
            raise ImportError(name)
        return found(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    for place in (path, tmp_path):
        with pytest.raises(MissingExtra, match="DuckDB") as trouble:
            read(place)
        assert trouble.value.hint == "pip install 'klinic[parquet]'"
    (tmp_path / "train.log").write_text(
        "".join(f"[{i}] reward=0.5 kl=0.01\n" for i in range(1, 41))
    )
    assert read(tmp_path).logged == 40


def outcome(path):
    try:
        return {
            key: list(zip(c.steps, c.values, strict=True))
            for key, c in sources.read_file(path).columns.items()
        }
    except KlinicError as trouble:
        assert trouble.what and trouble.where and trouble.hint
        return None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    rows = [(i, i / 8, "a" if i % 3 else "b") for i in range(200)]
    return write(
        tmp_path_factory.mktemp("w") / "x.parquet", "step BIGINT, reward DOUBLE, note VARCHAR", rows
    )


def test_a_file_that_is_cut_off_is_refused(tmp_path, whole):
    data = whole.read_bytes()
    for size in range(0, len(data), 37):
        (tmp_path / "x.parquet").write_bytes(data[:size])
        assert outcome(tmp_path / "x.parquet") is None, size


@settings(max_examples=25, deadline=None)
@given(at=st.integers(0, 1 << 16), byte=st.integers(0, 255))
def test_a_damaged_byte_never_crashes(tmp_path_factory, whole, at, byte):
    data = bytearray(whole.read_bytes())
    data[at % len(data)] = byte
    path = tmp_path_factory.mktemp("d") / "x.parquet"
    path.write_bytes(data)
    outcome(path)


@settings(max_examples=12, deadline=None)
@given(
    points=st.lists(
        st.tuples(st.none() | st.integers(-3, 60), st.none() | st.floats()), min_size=1, max_size=40
    )
)
def test_gaps_and_duplicates(tmp_path_factory, points):
    wanted = {}
    for step, value in points:
        if step is not None and value is not None:
            for old in [old for old in wanted if old >= step]:
                del wanted[old]
            wanted[step] = value
    place = tmp_path_factory.mktemp("p")
    wide = write(place / "wide.parquet", "step BIGINT, reward DOUBLE", points)
    long = write(
        place / "long.parquet",
        "step BIGINT, name VARCHAR, value DOUBLE",
        [(s, "reward", v) for s, v in points],
    )
    for path in (wide, long):
        found = outcome(path)
        assert found is not None
        kept = dict(found.get("reward", []))
        assert repr(sorted(kept.items())) == repr(sorted(wanted.items()))
