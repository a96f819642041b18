"""Trackio's database: values, tables, whose step counts, a writer at work, resumptions, configuration, damage."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracker_databases import trackio_database, trackio_log

from klinic import sources
from klinic.errors import KlinicError, UnreadableInput
from klinic.read import read, read_all


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def rows(first, last, level=0.5, run="r1", name="a run"):
    return [
        (run, name, i, {"train/reward": level, "train/kl": level / 10})
        for i in range(first, last + 1)
    ]


def files(folder):
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")
    }


def test_a_database_made_by_trackio_itself(shared):
    sample = shared / "samples" / "trackio" / "demo.db"
    reading = sources.read_file(sample)
    assert reading.name == "grpo-demo" and set(reading.columns) == {"m0", "m1", "m2"}
    assert reading.columns["m0"].steps.tolist() == [0, 1, 2, 3, 4]
    assert reading.columns["m0"].values[0] == 0.9271118328671807
    assert reading.config["learning_rate"] == (1e-6, f"{sample}:configs")
    assert not any(key.startswith("_") for key in reading.config)


def test_every_way_to_write_a_value(tmp_path):
    row = {
        "a": 1,
        "b": -2.5e-7,
        "c": "NaN",
        "d": "-Infinity",
        "e": True,
        "f": None,
        "g": {"h": 2.0},
        "table": {"_type": "trackio.table", "_value": [{"x": 1}]},
        "image": {"_type": "trackio.image", "file_path": "x.png", "caption": "7", "width": 64},
    }
    trackio_database(tmp_path / "p.db", [("r", "x", 3, row)]).close()
    columns = sources.read_file(tmp_path / "p.db").columns
    values = {key: column.values[0] for key, column in columns.items()}
    assert math.isnan(values.pop("c"))
    assert values == {"a": 1.0, "b": -2.5e-7, "d": -math.inf, "g/h": 2.0}
    assert columns["a"].steps.tolist() == [3]


def test_the_trainers_own_step_counts(tmp_path):
    logged, n = [], 0
    for step in range(1, 31):
        logged.append(("r", "x", n, {"profiling/Time taken: x": 0.5}))
        logged.append(
            ("r", "x", n + 1, {"train/global_step": 2 * step, "train/reward": step / 100})
        )
        n += 2
    trackio_database(tmp_path / "p.db", logged).close()
    run = read(tmp_path / "p.db")
    assert curve(run, "train/reward").steps.tolist() == list(range(2, 61, 2))
    assert "train/global_step" not in run.unread_keys


def test_several_runs_and_their_settings(tmp_path):
    configs = [
        ("r1", "one", {"learning_rate": 0.5, "_Username": "u"}),
        ("r2", "two", {"args": {"beta": 0.25}}),
    ]
    trackio_database(
        tmp_path / "p.db", rows(1, 20, name="one") + rows(1, 30, run="r2", name="two"), configs
    ).close()
    runs = {run.name: run for run in read_all(tmp_path)}
    assert runs["one"].setting("lr") == 0.5 and runs["two"].setting("kl_coef") == 0.25
    assert runs["two"].logged == 30 and runs["two"].setting("lr") is None


def test_a_resumed_run(tmp_path):
    trackio_database(
        tmp_path / "p.db", rows(1, 100) + rows(61, 80, 0.75) + rows(80, 80, 0.25)
    ).close()
    reward = curve(read(tmp_path / "p.db"), "train/reward")
    assert reward.values.tolist() == [0.5] * 60 + [0.75] * 19 + [0.25] and reward.steps[-1] == 80


def test_a_writer_at_work(tmp_path):
    writer = trackio_database(tmp_path / "p.db", rows(1, 20))
    before = files(tmp_path)
    assert before["p.db-wal"]
    assert read(tmp_path / "p.db").logged == 20
    assert files(tmp_path) == before
    trackio_log(writer, rows(21, 30))
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM metrics")  # not yet committed
    assert read(tmp_path).logged == 30
    writer.rollback()
    writer.close()
    assert read(tmp_path / "p.db").logged == 30 and list(files(tmp_path)) == ["p.db"]


def test_a_killed_writer_and_a_copy_of_what_it_left(tmp_path):
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from tracker_databases import trackio_database\n"
        "row = {'train/reward': 0.5}\n"
        "db = trackio_database(sys.argv[1], [('r', 'x', i, row) for i in range(40)])\n"
        "os._exit(0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "p.db"), str(Path(__file__).parent)], check=True
    )
    before = files(tmp_path)
    assert before["p.db-wal"]
    assert read(tmp_path / "p.db").logged == 40 and files(tmp_path) == before
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, data in before.items():
        (copy / name).write_bytes(data)
    assert read(copy / "p.db").logged == 40
    assert {path.name for path in copy.iterdir()} == set(before) and files(copy) == before
    for cut in range(
        1, len(before["p.db-wal"]), 5003
    ):  # what was not written whole was never there
        (copy / "p.db-wal").write_bytes(before["p.db-wal"][:-cut])
        try:
            kept = [run.logged for run in read_all(copy / "p.db")]
        except KlinicError as trouble:
            assert trouble.hint
        else:
            assert set(kept) <= {0, 40}


def test_a_database_at_rest_is_left_alone(tmp_path):
    trackio_database(tmp_path / "p.db", rows(1, 20)).close()
    before = files(tmp_path)
    tmp_path.chmod(0o500)
    assert read(tmp_path / "p.db").logged == 20
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_locked_database_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("klinic.sources.sqlite.opened.PATIENCE", 0.05)
    writer = trackio_database(tmp_path / "p.db", rows(1, 20), wal=False)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(UnreadableInput, match="locked") as trouble:
        read(tmp_path / "p.db")
    assert "try again" in trouble.value.hint
    writer.rollback()
    writer.close()
    assert read(tmp_path / "p.db").logged == 20


def test_a_writer_killed_within_a_transaction(tmp_path):
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from tracker_databases import trackio_database, trackio_log\n"
        "rows = [('r', 'x', i, {'train/reward': 0.5, 'y': 'z' * 3000}) for i in range(40)]\n"
        "db = trackio_database(sys.argv[1], rows, wal=False)\n"
        "db.execute('PRAGMA cache_size = 1')\n"
        "db.execute('BEGIN'); db.execute(\"UPDATE metrics SET metrics = '{}'\")\n"
        "os._exit(0)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "p.db"), str(Path(__file__).parent)], check=True
    )
    before = files(tmp_path)
    assert "p.db-journal" in before
    assert read(tmp_path / "p.db").logged == 40 and files(tmp_path) == before


def test_an_old_database_knows_only_names(tmp_path):
    with sqlite3.connect(tmp_path / "p.db") as db:
        db.execute(
            "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
        )
        db.executemany(
            "INSERT INTO metrics VALUES (NULL, '', ?, ?, '{\"reward\": 0.5}')",
            [(name, i) for i in range(15) for name in "ab"],
        )
    db.close()
    assert [(run.name, run.logged) for run in read_all(tmp_path / "p.db")] == [("a", 15), ("b", 15)]


def test_a_database_has_no_standard_input(tmp_path):
    trackio_database(tmp_path / "p.db", rows(1, 20)).close()
    with (
        (tmp_path / "p.db").open("rb") as stream,
        pytest.raises(UnreadableInput, match="standard input"),
    ):
        sources.read_stream(stream, "-")


JUNK = st.sampled_from(
    ["NaN", "Infinity", True, None, [1], {"_type": "x", "n": 3}, 1e300, 10**30, "text", ""]
)


@settings(max_examples=40, deadline=None)
@given(
    logged=st.lists(
        st.tuples(
            st.integers(0, 40),
            st.sampled_from(["reward", "kl", "entropy"]),
            st.floats() | st.integers(-9, 9) | JUNK,
        ),
        max_size=40,
    )
)
def test_gaps_junk_and_duplicates(tmp_path_factory, logged):
    """A value that is found is the last one that was logged for its key and step."""
    path = tmp_path_factory.mktemp("t") / "p.db"
    last = {}
    for step, key, value in logged:
        if not isinstance(value, bool | list | dict) and value not in (None, "text", ""):
            last[key, step] = float(value)
    written = [("r", "x", step, {key: value}) for step, key, value in logged]
    trackio_database(path, written, wal=False).close()
    columns = sources.read_file(path).columns
    found = {
        (key, step): value
        for key, column in columns.items()
        for step, value in zip(column.steps, column.values, strict=True)
    }
    assert all(repr(value) == repr(last[at]) for at, value in found.items())
    if [step for step, *_ in logged] == sorted(step for step, *_ in logged):
        assert found.keys() == last.keys()
