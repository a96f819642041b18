"""SwanLab's own files and the folders of mode="local": values, steps, resumptions, damage, configuration, console."""

from __future__ import annotations

import json
import math
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracker_files import swanlab_file, swanlab_printed, swanlab_scalar, swanlab_start, wandb_file

from klinic import sources
from klinic.errors import KlinicError, UnreadableInput
from klinic.read import read


def rows(first, last, level=0.5):
    return [
        swanlab_scalar(key, step, value)
        for step in range(first, last + 1)
        for key, value in (("train/reward", level), ("train/kl", level / 10))
    ]


def write(folder, data, name="run-abc.swanlab"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def local(folder, columns):
    """logs/COLUMN/N.log; columns: folder -> [(step, data)]."""
    for column, points in columns.items():
        place = folder / "logs" / column
        place.mkdir(parents=True)
        (place / "_summary.json").write_text("{}")
        for begin in range(0, len(points), 1000):
            lines = [
                json.dumps({"index": step, "data": data, "create_time": "2026"}) + "\n"
                for step, data in points[begin : begin + 1000]
            ]
            (place / f"{begin + 1000}.log").write_text("".join(lines))


def index(folder, run, name, columns):
    """runs.swanlab as swanboard 0.1 makes it, the columns that are read."""
    with sqlite3.connect(folder / "runs.swanlab") as db:
        db.execute("CREATE TABLE experiment (id INTEGER PRIMARY KEY, run_id TEXT, name TEXT)")
        db.execute(
            "CREATE TABLE tag (id INTEGER PRIMARY KEY, experiment_id INTEGER, name TEXT, folder TEXT)"
        )
        db.execute("CREATE TABLE chart (id INTEGER PRIMARY KEY)")
        db.execute("INSERT INTO experiment VALUES (1, ?, ?)", (run, name))
        db.executemany("INSERT INTO tag VALUES (NULL, 1, ?, ?)", columns.items())
    db.close()


def test_every_way_to_write_a_number(tmp_path):
    wanted = [0.0, -0.0, 1.0, -2.5e-7, math.nan, math.inf, -math.inf, 5e-324]
    records = [swanlab_start("an experiment")]
    records += [swanlab_scalar("a", step, value) for step, value in enumerate(wanted)]
    records += [swanlab_scalar("k" * 200, 2**40, 1.0), swanlab_scalar("名", 0, 2.0)]
    reading = sources.read_file(write(tmp_path, swanlab_file(records)))
    assert reading.name == "an experiment"
    assert repr(list(reading.columns["a"].values)) == repr(wanted)
    assert reading.columns["a"].steps.tolist() == list(range(8))
    assert (
        reading.columns["k" * 200].steps.tolist() == [2**40]
        and reading.columns["名"].values[0] == 2
    )


def test_a_folder_with_its_settings_and_console(tmp_path):
    home = tmp_path / "swanlog" / "run-20260101_000000-abc"
    crash = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "ValueError: no",
    ]
    write(home, swanlab_file([swanlab_start("mine"), *rows(0, 39), *map(swanlab_printed, crash)]))
    (home / "files").mkdir()
    (home / "files" / "config.yaml").write_text(
        "learning_rate:\n  desc: ''\n  sort: 0\n  value: 0.125\n"
    )
    (home / "files" / "swanlab-metadata.json").write_text('{"memory": {"total": 7},\n "step": 1}')
    (home / "debug").mkdir()
    (home / "debug" / "debug.log").write_text("[7] reward=1.0\n")
    for place in (tmp_path, home, home / "run-abc.swanlab"):
        run = read(place)
        assert run.name == "mine" and run.setting("lr") == 0.125 and run.logged == 40
        assert [event.kind for event in run.events] == ["traceback"] and not run.unread_keys


def test_a_resumed_run_and_a_run_beside_its_log(tmp_path):
    home = tmp_path / "swanlog"
    write(home / "run-20260101_000000-abc", swanlab_file([swanlab_start("x", 1), *rows(1, 100)]))
    write(
        home / "run-20260102_000000-abc", swanlab_file([swanlab_start("x", 2), *rows(61, 80, 0.75)])
    )
    run = read(tmp_path)
    assert curve(run, "train/reward").values.tolist() == [0.5] * 60 + [0.75] * 20
    (tmp_path / "train.log").write_text("".join(f"[{i}] entropy=1.5\n" for i in range(1, 41)))
    assert {"entropy", "train/reward"} <= {
        c.metric.source_key for c in read(tmp_path).curves.values()
    }


def test_a_local_run_whose_file_lags_behind(tmp_path):
    home = tmp_path / "run-20260101_000000-abc"
    write(home, swanlab_file([swanlab_start("x"), *rows(0, 9)]))
    local(
        home,
        {
            "1": [(i, 0.5) for i in range(1200)],
            "2": [(i, math.nan) for i in range(20)],
            "3": [(0, ["text"])],
        },
    )
    assert read(tmp_path).logged == 10  # nothing says which column is which
    index(tmp_path, home.name, "x", {"train/reward": "1", "train/kl": "2", "said": "3"})
    for place in (tmp_path, home / "run-abc.swanlab", home / "logs" / "1"):
        run = read(place)
        assert curve(run, "train/reward").steps.tolist() == list(range(1200))
        assert curve(run, "train/kl").values.tolist()[:10] == [0.05] * 10
        assert math.isnan(curve(run, "train/kl").values[15])


def test_a_local_run_without_its_file(tmp_path):
    home = tmp_path / "swanlog" / "run-20260101_000000-abc"
    local(home, {"1": [(i, 0.5) for i in range(40)]})
    with pytest.raises(UnreadableInput, match="without a name") as trouble:
        read(home)
    assert "runs.swanlab" in trouble.value.hint
    index(home.parent, home.name, "mine", {"reward": "1"})
    for place in (tmp_path, home):
        run = read(place)
        assert run.name == "mine" and curve(run, "reward").steps.tolist() == list(range(40))
    with pytest.raises(UnreadableInput, match="index of runs"):
        read(home.parent / "runs.swanlab")


def test_an_old_local_run_spells_its_names(tmp_path):
    local(tmp_path / "run-20240101_000000-abc", {"train%2Freward": [(i, 0.5) for i in range(20)]})
    assert len(curve(read(tmp_path), "train/reward").values) == 20


def test_a_file_of_swanlab_0_6(tmp_path):
    def record(kind, **data):
        return (json.dumps({"model_type": kind, "data": data}) + "\n").encode()

    records = [record("Experiment", id="a", name="mine"), record("Header", backup_type="DEFAULT")]
    for step in range(40):
        metric = {"index": step, "data": "NaN" if step == 3 else 0.5, "create_time": "2025"}
        records.append(
            record("Scalar", metric=metric, key="train/reward", step=step, epoch=step + 1)
        )
    records.append(record("Media", metric={"data": ["x.png"]}, key="image", step=1, epoch=1))
    records.append(record("Log", message="ValueError: no", level="WARN", epoch=1, create_time=""))
    place = tmp_path / "run-20250101_000000-abc"
    write(place, wandb_file(records, b":SWL\xd6\xe1\x01"), "backup.swanlab")
    run = read(tmp_path)
    reward = curve(run, "train/reward")
    assert run.name == "mine" and reward.steps.tolist() == list(range(40))
    assert math.isnan(reward.values[3]) and reward.values[4] == 0.5


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b":SWL\xd6\xe1\x02", "no whole record"),
        (swanlab_file(rows(1, 1))[:30], "no whole record"),
        (swanlab_file(rows(1, 1), version=3), "version 3"),
        (b"version https://git-lfs.github.com/spec/v1\n", "does not begin like one"),
        (b":SW", "does not begin like one"),
    ],
)
def test_a_file_without_a_record_is_one_clear_line(tmp_path, data, says):
    path = write(tmp_path, data)
    for place in (path, tmp_path):
        with pytest.raises(UnreadableInput, match=says) as trouble:
            read(place)
        assert trouble.value.hint


def test_a_killed_run_keeps_what_was_written(tmp_path):
    whole = swanlab_file(rows(0, 9))
    for size in range(len(whole)):
        path = write(tmp_path, whole[:size])
        try:
            columns = sources.read_file(path).columns
        except KlinicError as trouble:
            assert trouble.hint and size < 100
            continue
        for key, found in columns.items():
            assert found.steps.tolist() == list(range(len(found.steps)))
            assert set(found.values) == {0.5 if "reward" in key else 0.05}


@settings(max_examples=60, deadline=None)
@given(at=st.integers(7, 10**6), byte=st.integers(0, 255), junk=st.binary(max_size=200))
def test_damage_is_counted_and_never_a_number(tmp_path_factory, at, byte, junk):
    data = bytearray(swanlab_file(rows(0, 60)))
    data[7 + at % (len(data) - 7)] = byte
    path = write(tmp_path_factory.mktemp("s"), bytes(data) + junk)
    try:
        columns = sources.read_file(path).columns
    except KlinicError as trouble:
        assert trouble.hint
        return
    assert set(columns) <= {"train/reward", "train/kl"}
    assert all(set(column.values) <= {0.5, 0.05} for column in columns.values())
