"""MLflow's file store and database: values, NaN, resumptions, deleted runs, names, configuration, damage."""

from __future__ import annotations

import math
import sqlite3
import sys

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tracker_databases import mlflow_database, mlflow_folder

from klinic.cli import klinic as group
from klinic.errors import KlinicError, UnreadableInput
from klinic.read import read, read_all


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def line(first, last, level=0.5, start=1000):
    return [(start + step, level, step) for step in range(first, last + 1)]


def test_a_store_made_by_mlflow_itself(shared):
    run = read(shared / "samples" / "mlflow_filestore")
    assert run.name == "zealous-hen-757" and run.setting("kl_coef") == 0.04
    assert curve(run, "train/reward").values.tolist() == [0.0, 0.1, 0.2, 0.30000000000000004, 0.4]
    assert run.config["kl_coef"].at.endswith("params/beta")


def test_every_folder_with_a_meta_file_is_a_run_and_no_part_of_one_is(tmp_path):
    home = tmp_path / "mlruns" / "1"
    one = mlflow_folder(
        home / "aaa", {"train/reward": line(0, 39), "kl": line(0, 39)}, [("args/lr", 0.25)]
    )
    mlflow_folder(home / "bbb", {"reward": line(0, 9)}, name="b")
    mlflow_folder(home / "ccc", {"reward": line(0, 9)}, name="c", stage="deleted")
    (home / "meta.yaml").write_text("name: demo\n")
    runs = {run.name: run for run in read_all(tmp_path)}
    assert set(runs) == {"a run", "b"}
    assert runs["a run"].setting("lr") == 0.25
    for place in (one, one / "metrics", one / "metrics" / "train", one / "metrics" / "kl"):
        assert curve(read(place), "train/reward").steps.tolist() == list(range(40))


def test_a_line_that_is_cut_off_is_not_read(tmp_path):
    folder = mlflow_folder(tmp_path / "r", {"reward": line(0, 20)})
    path = folder / "metrics" / "reward"
    whole = path.read_bytes()
    for cut in range(1, 40):
        path.write_bytes(whole[:-cut])
        found = curve(read(folder), "reward")
        kept = whole[:-cut].count(b"\n")
        assert found.steps.tolist() == list(range(kept)) and set(found.values) == {0.5}


def test_a_resumed_run_goes_on_where_it_went_back_to(tmp_path):
    again = {
        key: line(0, 100, level) + line(61, 80, level + 1, start=9000)
        for key, level in (("reward", 0.5), ("kl", 0.1), ("train/entropy", 2.0))
    }
    runs = [read(mlflow_folder(tmp_path / "r", again))]
    points = [("r", key, step, value, time, 0) for key in again for time, value, step in again[key]]
    runs.append(read(mlflow_database(tmp_path / "m.db", [("r", "", "")], points)))
    for run in runs:
        for key, level in (("reward", 0.5), ("kl", 0.1)):
            found = curve(run, key)
            assert found.steps.tolist() == list(range(81))
            assert found.values.tolist() == [level] * 61 + [level + 1] * 20
        assert len(run.segments) == 2


def test_histories_written_at_once_lose_nothing(tmp_path):
    keys = {key: [(7, 0.5, step) for step in range(50)] for key in ("reward", "kl", "entropy")}
    assert all(
        len(c.values) == 50 for c in read(mlflow_folder(tmp_path / "r", keys)).curves.values()
    )


def test_the_later_of_two_values_at_one_step_counts(tmp_path):
    points = [("r", "reward", step, 0.1, step, 0) for step in range(20)]
    points += [("r", "reward", 19, 0.7, 50, 0)]
    run = read(mlflow_database(tmp_path / "m.db", [("r", "x", "")], points))
    assert curve(run, "reward").values.tolist() == [0.1] * 19 + [0.7] and run.name == "x"


def test_nan_and_infinity_of_the_database(tmp_path):
    largest = sys.float_info.max
    points = [
        ("r", "reward", step, value, step, nan)
        for step, (value, nan) in enumerate(
            [(0.0, 0), (0.0, 1), (largest, 0), (-largest, 0), (-2.5e-7, 0)]
        )
    ]
    values = curve(
        read(mlflow_database(tmp_path / "m.db", [("r", "x", "")], points)), "reward"
    ).values
    assert math.isnan(values[1])
    assert [v for v in values if v == v] == [0.0, math.inf, -math.inf, -2.5e-7]


def test_a_database_of_several_runs(tmp_path):
    runs = [
        ("aaaaaaaa1", "twin", ""),
        ("aaaaaaaa2", "twin", ""),
        ("bbbbbbbbb", "one", ""),
        ("c", "gone", "deleted"),
        ("d", "vanished", "experiment deleted"),
        ("e", "empty", ""),
    ]
    points = [(run, "reward", step, 0.5, step, 0) for run, *_ in runs[:5] for step in range(30)]
    path = mlflow_database(
        tmp_path / "mlflow.db", runs, points, [("bbbbbbbbb", "args/learning_rate", "0.5")]
    )
    (tmp_path / "config.yaml").write_text("beta: 0.25\n")  # of which of them it does not say
    found = {run.name: run for run in read_all(path)}
    assert set(found) == {"twin (aaaaaaaa1)", "twin (aaaaaaaa2)", "one"}
    assert found["one"].setting("lr") == 0.5 and found["one"].config["lr"].at == f"{path}:params"
    assert found["one"].setting("kl_coef") is None
    said = CliRunner().invoke(group, ["diagnose", str(path)]).output
    assert all(name in said for name in found) and "vanished" not in said
    with pytest.raises(UnreadableInput, match="3 runs") as trouble:
        read(path)
    assert "PATH:NAME" in trouble.value.hint
    assert read(f"{path}:one").name == "one"
    with pytest.raises(UnreadableInput, match="no run 'on'") as trouble:
        read(f"{path}:on")
    assert trouble.value.hint == "did you mean one?"


@pytest.mark.parametrize("name", ["x.db", "x.sqlite"])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no database at all, but named so", "does not begin like one"),
        (b"SQLite format 3\0 and then nothing", "damaged"),
    ],
)
def test_what_only_looks_like_a_database(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableInput, match=says):
        read(tmp_path / name)


def test_a_database_of_something_else(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as db:
        db.execute("CREATE TABLE metrics (a INTEGER)")
    db.close()
    with pytest.raises(UnreadableInput, match="without a tracker's tables"):
        read(tmp_path / "x.db")
    (tmp_path / "train.log").write_text(
        "".join(f"[{i}] reward=0.5 kl=0.01\n" for i in range(1, 41))
    )
    assert read(tmp_path).logged == 40  # beside a log it is passed over


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    points = [("r", key, step, step / 8, step, 0) for step in range(60) for key in ("reward", "kl")]
    path = mlflow_database(tmp_path_factory.mktemp("db") / "m.db", [("r", "x", "")], points)
    return path


def outcome(path):
    """The values by step; None where it is refused with what, where and what to do."""
    try:
        runs = read_all(path)
    except KlinicError as trouble:
        assert trouble.what and trouble.where and trouble.hint
        return None
    return [
        dict(zip(c.steps.tolist(), c.values.tolist(), strict=True))
        for run in runs
        for c in run.curves.values()
    ]


def test_a_database_that_is_cut_off_is_refused(tmp_path, whole):
    path = tmp_path / "m.db"
    whole = whole.read_bytes()
    for size in [*range(0, 200, 7), *range(200, len(whole), 997), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert outcome(path) is None, size


@settings(max_examples=60, deadline=None)
@given(at=st.integers(0, 1 << 20), byte=st.integers(0, 255))
def test_a_damaged_byte_never_crashes(tmp_path_factory, whole, at, byte):
    data = bytearray(whole.read_bytes())
    data[at % len(data)] = byte
    path = tmp_path_factory.mktemp("d") / "m.db"
    path.write_bytes(data)
    outcome(path)
    assert [p.name for p in path.parent.iterdir()] == ["m.db"] and path.read_bytes() == bytes(data)


@settings(max_examples=25, deadline=None)
@given(
    points=st.lists(
        st.tuples(st.integers(-3, 60), st.floats(width=32) | st.integers(-5, 5)), max_size=60
    )
)
@example(points=[(0, 0.0), (2, 0.0), (1, 0.0)])  # no slower process: each step was logged once
def test_file_store_and_database_say_the_same(tmp_path_factory, points):
    """Gaps, NaN, infinity, duplicates and steps that go back: of each step the last value, and nothing older than a restart."""
    place = tmp_path_factory.mktemp("p")
    timed = [(1000 + n, float(value) + 0.0, step) for n, (step, value) in enumerate(points)]
    wanted: dict[int, float] = {}
    for _, value, step in timed:
        for old in [old for old in wanted if old >= step]:
            del wanted[old]
        wanted[step] = value
    stored = [
        (
            "r",
            "reward",
            step,
            0.0 if value != value else max(min(value, sys.float_info.max), -sys.float_info.max),
            time,
            int(value != value),
        )
        for time, value, step in timed
    ]
    for path in (
        mlflow_folder(place / "r", {"reward": timed}),
        mlflow_database(place / "m.db", [("r", "x", "")], stored),
    ):
        (found,) = outcome(path) or [{}]
        assert repr(found) == repr(dict(sorted(wanted.items())))
