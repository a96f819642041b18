"""wandb's own files and the CSV its pages export: values, steps, resumptions, damage, configuration, console."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tracker_files import config, history, part, printed, wandb_file

from klinic import sources
from klinic.errors import UnreadableInput
from klinic.read import read, read_all

RUN = Path(__file__).parent / "runs" / "wandb" / "demo"
DEMO = Path(sources.__file__).parent.parent / "demo" / "trl-entropy-collapse"


def rows(first, last, shift=0.0, **more):
    return [
        history({"_step": i, "train/reward": 0.5 + shift, "train/entropy": 1.5, **more})
        for i in range(first, last + 1)
    ]


def write(folder, data, name="run-abc.wandb"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def test_the_librarys_own_file_gives_the_curves_of_the_run_it_was_made_from():
    run, state = read(RUN), read(DEMO / "trainer_state.json")
    assert run.name == "offline-run-20260101_000000-demorun1"
    for key in ("reward", "entropy", "frac_reward_zero_std"):
        ours, theirs = curve(run, f"train/{key}"), curve(state, key)
        assert ours.steps.tolist() == theirs.steps.tolist()[:40]
        np.testing.assert_array_equal(ours.values, theirs.values[:40])
    assert run.setting("lr") == 0.001 and run.setting("group_size") == 8


@pytest.mark.parametrize("nested", [True, False])
def test_every_way_to_write_a_number(tmp_path, nested):
    row = {
        "_step": 3,
        "_timestamp": 1.7e9,
        "a": 1,
        "b": -2.5e-7,
        "c": math.nan,
        "d": math.inf,
        "e": "text",
        "f": True,
        "g": {"h": 2.0, "i": {"j": 3}},
        "table": {"_type": "table-file", "ncols": 3},
        "list": [1, 2],
    }
    found = sources.read_file(write(tmp_path, wandb_file([history(row, nested)]))).columns
    values = {key: column.values[0] for key, column in found.items()}
    assert math.isnan(values.pop("c"))
    assert values == {"a": 1.0, "b": -2.5e-7, "d": math.inf, "g/h": 2.0, "g/i/j": 3.0}
    assert found["a"].steps.tolist() == [3]


def test_records_over_several_blocks_and_a_killed_run(tmp_path):
    long = printed("x" * 100_000 + "\n")
    data = wandb_file([long, *rows(1, 400), long, *rows(401, 800), long])
    assert read(write(tmp_path, data)).logged == 800
    whole = wandb_file([*rows(1, 800)])
    for cut in (1, 40, 20_000, len(whole) - 200):
        kept = read(write(tmp_path, whole[:-cut]))
        assert 0 < kept.logged <= 800 and "broken records" not in kept.holds


def test_a_damaged_block_is_counted_and_the_rest_is_read(tmp_path):
    data = bytearray(wandb_file(rows(1, 2000)))
    data[40_000] ^= 255
    reading = sources.read_file(write(tmp_path, bytes(data)))
    assert reading.holds["broken records"] == 1 and 1000 < reading.logged < 2000
    assert reading.columns["train/reward"].steps[-1] == 2000


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b":W&B\xe1\xbe\x00", "no whole record"),
        (wandb_file(rows(1, 1))[:40], "no whole record"),
        (b"version https://git-lfs.github.com/spec/v1\n", "does not begin like one"),
        (b":W&", "does not begin like one"),
    ],
)
def test_a_file_without_a_record_is_one_clear_line(tmp_path, data, says):
    path = write(tmp_path, data)
    for place in (path, tmp_path):
        with pytest.raises(UnreadableInput, match=says) as trouble:
            read(place)
        assert path.name in str(trouble.value) and trouble.value.hint


def test_the_trainers_own_step_counts_and_rows_without_one_stand_beside(tmp_path):
    records, n = [], 0
    for step in range(1, 31):
        records.append(history({"_step": n, "profiling/Time taken: x": 0.5}))
        records.append(
            history({"_step": n + 1, "train/global_step": 2 * step, "train/reward": step / 100})
        )
        n += 2
    reading = sources.read_file(write(tmp_path, wandb_file(records)))
    assert reading.columns["train/reward"].steps.tolist() == list(range(2, 61, 2))
    assert reading.columns["profiling/Time taken: x"].steps.tolist()[:3] == [2, 2, 4]
    assert "train/global_step" not in reading.columns and not reading.segments


def test_a_step_of_the_evaluations_alone_is_not_the_runs(tmp_path):
    defined = part(12, part(1, "eval/acc") + part(4, "epoch"))
    records = [defined]
    for i in range(40):
        records += rows(i, i)
        if i % 10 == 9:
            records.append(history({"_step": i, "epoch": i // 10, "eval/acc": 0.5}))
    reading = sources.read_file(write(tmp_path, wandb_file(records)))
    assert reading.columns["train/reward"].steps.tolist() == list(range(40))
    stuck = [history({"_step": i, "train/global_step": 0, "train/reward": 0.5}) for i in range(9)]
    reading = sources.read_file(write(tmp_path, wandb_file(stuck)))
    assert reading.columns["train/reward"].steps.tolist() == list(range(9))


def test_a_step_that_the_run_defines(tmp_path):
    records = [part(12, part(2, "rollout/*") + part(4, "rollout/step"))]
    records += [
        history({"_step": 3 * i, "rollout/step": i, "rollout/reward": 0.1}) for i in range(20)
    ]
    reading = sources.read_file(write(tmp_path, wandb_file(records)))
    assert reading.columns["rollout/reward"].steps.tolist() == list(range(20))


def test_a_resumed_run_is_one_run_and_its_console_belongs_to_it(tmp_path):
    home = tmp_path / "wandb"
    started = [part(17, part(1, "abc") + part(17, bytes([8, n]))) for n in (1, 2)]
    first, second = home / "run-20260101_000000-abc", home / "run-20260102_000000-abc"
    write(first, wandb_file([started[0], *rows(1, 100)]))
    write(second, wandb_file([started[1], *rows(61, 140, 0.25)]))
    write(home / "offline-run-20260103_000000-xyz", wandb_file(rows(1, 30)))
    (second / "files").mkdir()
    (second / "logs").mkdir()
    (second / "files" / "output.log").write_text("[140] reward=0.1 kl=0.02\n")
    (second / "files" / "wandb-summary.json").write_text('{"train/reward": 9.0,\n "_step": 900}')
    (second / "files" / "config.yaml").write_text(
        "wandb_version: 1\nlearning_rate:\n  value: 0.125\n"
    )
    for place in (home, second / "logs"):
        (place / "debug-internal.log").write_text("[7] reward=1.0\n")
    runs = {run.name: run for run in read_all(tmp_path)}
    assert set(runs) == {second.name, "offline-run-20260103_000000-xyz"}
    run = runs[second.name]
    reward = curve(run, "train/reward")
    assert reward.values.tolist() == [0.5] * 60 + [0.75] * 80 and run.last == 140
    assert curve(run, "kl").steps.tolist() == [140]
    assert run.setting("lr") == 0.125


def test_a_single_wandb_run_belongs_to_the_log_beside(tmp_path):
    (tmp_path / "train.log").write_text(
        "".join(f"[{i}] reward=0.5 kl=0.01\n" for i in range(1, 41))
    )
    write(tmp_path / "wandb" / "run-20260101_000000-abc", wandb_file(rows(1, 40)))
    run = read(tmp_path)
    assert {"kl", "train/entropy"} <= {c.metric.source_key for c in run.curves.values()}


def test_configuration_and_console_in_the_file(tmp_path):
    crash = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nValueError: no\n'
    )
    records = [config({"learning_rate": 0.125, "algorithm": {"adv": 1}, "_wandb": {"x": 1}})]
    records += [*rows(1, 20), *(printed(line + "\n") for line in crash.splitlines())]
    run = read(write(tmp_path, wandb_file(records)))
    assert run.setting("lr") == 0.125 and [e.kind for e in run.events] == ["traceback"]
    said = "".join(f"[{i}] reward=0.5 kl=0.01\n" for i in range(1, 21))
    run = read(write(tmp_path, wandb_file([printed(said)])))
    assert run.logged == 20 and curve(run, "kl").values[0] == 0.01


def test_the_csv_of_a_page_holds_several_runs(tmp_path):
    header = '"Step","a - b - train/reward","a - b - train/reward__MIN","a - b - train/reward__MAX","c - train/reward"'
    text = (
        header
        + "\n"
        + "".join(f'"{i}","{i / 100}","0","1","{"" if i % 2 else 0.5}"\n' for i in range(40))
    )
    path = tmp_path / "reward.csv"
    path.write_text(text)
    first, second = read_all(path)
    assert (first.name, second.name) == ("a - b", "c")
    assert curve(first, "train/reward").values[7] == 0.07
    assert curve(second, "train/reward").steps.tolist() == list(range(0, 40, 2))
    (tmp_path / "kl.csv").write_text(text.replace("train/reward", "train/kl"))
    runs = read_all(tmp_path)  # a chart a file: the runs are put together by name
    assert [run.name for run in runs] == ["a - b", "c"] or [run.name for run in runs] == [
        "c",
        "a - b",
    ]
    assert all(curve(run, "train/kl") and curve(run, "train/reward") for run in runs)


def test_the_csv_of_a_page_over_time_or_another_step(tmp_path):
    path = tmp_path / "reward.csv"
    body = "".join(f"{10 * i}.5,{i / 100}\n" for i in range(1, 21))
    path.write_text("Relative Time (Process),run - train/reward\n" + body)
    run = read(path)
    assert (
        curve(run, "train/reward").steps.tolist() == list(range(1, 21)) and "counted" in run.notes
    )
    path.write_text("train/global_step,run - train/reward\n" + body)
    assert curve(read(path), "train/reward").steps[0] == 10
