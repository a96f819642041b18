"""The recorder: what it writes survives a kill, goes on after it, and is read as it stands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_instrument import count_in, one_step

import klinic
from klinic.errors import BadUsage, UnreadableInput
from klinic.instrument import Recorder, Step, length_buckets
from klinic.read import read, read_all

ENTROPY = "entropy/token_mean/response_only"


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def a_step(seed: int) -> Step:
    step = Step()
    count_in(step, one_step(np.random.default_rng(seed)), slice(None), slice(None))
    return step


def test_diagnose_reads_names_and_definitions_as_they_stand(tmp_path):
    assert klinic.Recorder is Recorder
    with Recorder(tmp_path / "run", config={"lr": 1e-6, "temperature": 0.9}) as recorder:
        recorder.define("judge/style", "mean score of the style judge", unit="score")
        for n in range(12):
            recorder.log(n, a_step(n), seconds=2.5, tokens=100 * n, policy_version=n - 1, lag=1)
            recorder.log(n, {"judge/style": np.float32(0.5), "gone": None})
    run = read(tmp_path / "run")
    assert not run.unread_keys and run.logged == 12
    for name, value in a_step(11).results().items():
        assert run.curves[name].values[-1] == pytest.approx(value), name
    own = run.curves["judge/style"].metric
    assert (own.definition, own.unit) == ("mean score of the style judge", "score")
    assert (
        run.curves["time/step_s"].values[-1] == 2.5 and run.curves["tokens/seen"].values[3] == 300
    )
    assert run.curves["staleness/versions_mean"].values[0] == 1
    assert run.curves["rollout/version"].values[0] == -1
    assert run.setting("lr") == 1e-6 and run.trainer.name == "generic"


def test_a_name_keeps_its_definition_also_after_a_resume(tmp_path):
    with Recorder(tmp_path) as recorder:
        recorder.define("my/gap", "reward minus judge, mean", unit="score")
        recorder.log(1, {"my/gap": 1.0})
    with Recorder(tmp_path) as recorder:
        recorder.define("my/gap", "reward minus judge, mean", unit="score")
        with pytest.raises(BadUsage, match="already defined"):
            recorder.define("my/gap", "reward minus judge, mean", unit="share")
    assert len(rows_of(tmp_path / "metrics.jsonl")) == 2  # said once


def test_a_killed_run_has_every_logged_line_and_goes_on(tmp_path):
    code = (
        "import sys; from klinic.instrument import Recorder; r = Recorder(sys.argv[1])\n"
        "for n in range(10**9): r.log(n, {'reward': n / 10, 'entropy': 1.0}); print(n, flush=True)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(50):
        told = int(child.stdout.readline())
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    child.wait()
    log = tmp_path / "metrics.jsonl"
    kept = rows_of(log)
    assert [row["step"] for row in kept] == list(range(len(kept))) and len(kept) > told
    with log.open("a") as stream:
        stream.write('{"step":99999,"reward":1.0,"ent')  # what the kill would have torn
    with Recorder(tmp_path) as recorder:
        recorder.log(20, {"reward": 5.0, "entropy": 1.0})
    assert rows_of(log)[:-1] == kept
    run = read(tmp_path)
    assert run.last == 20 and run.logged == 21 and run.segments[-1].rewound_to == 20
    assert run.holds.get("broken lines", 0) == 0


def test_what_is_no_jsonl_is_refused_and_left_alone(tmp_path):
    other = tmp_path / "notes.jsonl"
    other.write_text("no json\nand no end")
    with pytest.raises(BadUsage, match="no JSON lines"):
        Recorder(other)
    assert other.read_text() == "no json\nand no end"
    (tmp_path / "file").touch()
    with pytest.raises(UnreadableInput, match="cannot be written"):
        Recorder(tmp_path / "file" / "run")
    with pytest.raises(BadUsage, match="is no number"), Recorder(tmp_path / "run") as recorder:
        recorder.log(1, {"reward": "high"})


def test_rotated_files_are_one_run_that_goes_on(tmp_path):
    with Recorder(tmp_path) as recorder:
        recorder.log(0, {"reward": 0.0, "entropy": 1.0})
    for begin, end in ((1, 60), (40, 90)):  # stopped at 60, resumed from a checkpoint at 40
        with Recorder(tmp_path, rotate=1000) as recorder:
            recorder.define("my/own", "anything")
            recorder.define(f"my/since_{begin}", "said late")
            for n in range(begin, end):
                recorder.log(
                    n, {"reward": n + begin / 1000, "entropy": 1.0, "my/own": n, "my/since_40": n}
                )
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files[:2] == ["metrics-0001.jsonl", "metrics-0002.jsonl"] and len(files) > 4
    assert all((tmp_path / name).stat().st_size < 1200 for name in files)
    (run,) = read_all(tmp_path)
    assert run.curves["reward/seq_mean/unknown"].steps.tolist() == list(range(90))
    assert run.curves["reward/seq_mean/unknown"].values[50] == pytest.approx(50.04)
    assert run.curves["my/own"].metric.definition == "anything"
    assert run.curves["my/since_40"].metric.definition == "said late"
    assert not read(tmp_path / files[-1]).unread_keys  # each file can be read alone
    with Recorder(tmp_path) as recorder:  # rotation is not asked for: it goes on in the last one
        recorder.log(90, {"reward": 90.0, "entropy": 1.0})
    assert sorted(path.name for path in tmp_path.iterdir()) == files


def test_slices_are_read_and_name_the_task_that_broke(tmp_path):
    rng = np.random.default_rng(0)
    with Recorder(tmp_path) as recorder:
        for n in range(60):
            lost = 0.3 * max(0, n - 30) / 30
            tasks = {"gsm8k": 0.5 + n / 300, "code": 0.8 - lost}
            noise = rng.normal(0, 0.01, 4)
            recorder.log(
                n,
                {"acc/seq_mean": 0.6 + n / 400 + noise[0], ENTROPY: 1.0 + noise[1]},
                slices={
                    **{
                        f"task={t}": {"acc/seq_mean": a + noise[2], ENTROPY: 1.0}
                        for t, a in tasks.items()
                    },
                    "len=0-255": {"reward/seq_mean/raw": 0.1},
                },
            )
        with pytest.raises(BadUsage, match="slice"):
            recorder.log(60, slices={"gsm8k": {"acc/seq_mean": 1.0}})
    run = read(tmp_path)
    assert not run.unread_keys
    assert run.curves["acc_task/code"].values[0] == pytest.approx(0.8, abs=0.05)
    assert f"by/task=code/{ENTROPY}" in run.curves and "reward_by/len/0_255" in run.curves
    found = {f.failure: f for f in klinic.diagnose(run).findings}
    assert found["eval-regression"].slice == "task=code"


def test_length_buckets_hold_every_response_once():
    mask = np.arange(8)[None] < np.array([1, 3, 4, 8])[:, None]
    found = length_buckets(mask, [4, 6])
    assert {name: part.tolist() for name, part in found.items()} == {
        "len=0-3": [True, True, False, False],
        "len=4-5": [False, False, True, False],
        "len=6-": [False, False, False, True],
    }
    assert "len=4-5" not in length_buckets(mask[:1], [4, 6])
    with pytest.raises(BadUsage, match="do not rise"):
        length_buckets(mask, [6, 4])


def test_samples_are_the_best_the_worst_and_some_of_the_rest(tmp_path):
    rows = [{"completion": f"c{i}", "reward": float(i), "length": np.int64(i)} for i in range(20)]
    rows.append({"completion": "unjudged", "reward": float("nan")})
    with Recorder(tmp_path) as recorder:
        recorder.log(7, {"reward": 1.0})
        recorder.samples(7, rows, top=2, bottom=2, random=3)
        recorder.samples(8, rows[:3], top=2, bottom=2, random=3)
        with pytest.raises(BadUsage, match="unknown column 'rewrad'"):
            recorder.samples(8, [{"completion": "", "rewrad": 1.0}])
    kept = rows_of(tmp_path / "rollouts.jsonl")
    first = [row for row in kept if row["step"] == 7]
    assert [row["reward"] for row in first[:4]] == [19, 18, 0, 1] and len(first) == 7
    assert len({row["completion"] for row in first}) == 7 and first[0]["length"] == 19
    assert len(kept) - len(first) == 3  # no row twice
    assert read(tmp_path).logged == 1


def test_what_was_not_counted_is_left_out_and_a_true_nan_is_kept(tmp_path):
    step = Step(quantiles=False)
    step.responses(np.ones((2, 3)), rewards=np.array([1.0, 2.0]), right=np.zeros(2))
    step.add("policy_loss", np.array([np.nan]))
    with Recorder(tmp_path) as recorder:
        recorder.log(1, step)
    (row,) = rows_of(tmp_path / "metrics.jsonl")
    assert "len/right_mean" not in row and row["policy_loss"] != row["policy_loss"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_loses_rows_and_not_the_run(tmp_path, capsys):
    with Recorder(tmp_path) as recorder:
        recorder.log(1, {"reward": 1.0})
        real, recorder._lines._file = recorder._lines._file, os.open("/dev/full", os.O_WRONLY)
        recorder.log(2, {"reward": 1.0})
        recorder.log(3, {"reward": 1.0})
        os.close(recorder._lines._file)
        recorder._lines._file = real
        recorder.log(4, {"reward": 1.0})
        assert recorder.lost == 2
    assert [row["step"] for row in rows_of(tmp_path / "metrics.jsonl") if row] == [1, 4]
    assert capsys.readouterr().err.count("error:") == 1


def test_a_step_takes_less_than_a_millisecond(tmp_path):
    values = {f"my/metric_{i}": i / 7 for i in range(60)}
    times = []
    with Recorder(tmp_path) as recorder:
        for n in range(200):
            begun = time.perf_counter()
            recorder.log(n, values)
            times.append(time.perf_counter() - begun)
    assert sorted(times)[100] < 1e-3


@pytest.mark.torch
@pytest.mark.parametrize("mirror", ["tensorboard", "wandb"])
def test_a_mirror_holds_the_same_numbers(tmp_path, monkeypatch, mirror):
    pytest.importorskip("torch")
    pytest.importorskip(mirror)
    for name, value in (("MODE", "offline"), ("DIR", str(tmp_path)), ("SILENT", "true")):
        monkeypatch.setenv(f"WANDB_{name}", value)
    with Recorder(tmp_path / "run", config={"lr": 1e-6}, mirror=mirror) as recorder:
        for n in range(1, 12):
            recorder.log(n, {"reward": n / 2, ENTROPY: 2.0 - n / 20})
    (tmp_path / "run" / "metrics.jsonl").rename(tmp_path / "own.jsonl")
    mirrored = read(tmp_path / "run" if mirror == "tensorboard" else tmp_path / "wandb")
    own = read(tmp_path / "own.jsonl")
    for name in ("reward/seq_mean/unknown", ENTROPY):
        assert mirrored.curves[name].steps.tolist() == own.curves[name].steps.tolist()
        assert mirrored.curves[name].values == pytest.approx(own.curves[name].values)


def test_an_unknown_mirror_is_refused(tmp_path):
    with pytest.raises(BadUsage, match="unknown mirror 'wandbb'") as refused:
        Recorder(tmp_path, mirror="wandbb")
    assert refused.value.hint == "did you mean wandb?"
