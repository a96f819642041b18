"""Several logs in one folder: a run that went on, runs of their own, ranks, and states that contradict each other."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from klinic.diagnose import diagnose_all
from klinic.read import read, read_all
from klinic.render import markdown, text
from klinic.render._layout import WIDTH, columns


def log(first: int, last: int, seed: int = 0) -> str:
    rnd = random.Random(seed)
    return "".join(
        f"step {s} reward={0.3 + s / 400 + rnd.gauss(0, 0.02):.3f} entropy={1.8 - s / 300 + rnd.gauss(0, 0.02):.3f} kl={s / 5000:.4f}\n"
        for s in range(first, last + 1)
    )


def by_source(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


@pytest.mark.parametrize(
    "names",
    [("slurm-4711.out", "slurm-4712.out"), ("train_9.log", "train_10.log"), ("a.o7", "a.o8")],
)
def test_a_job_that_was_queued_again_goes_on_with_its_run(tmp_path, names):
    (tmp_path / names[0]).write_text(log(1, 60))
    (tmp_path / names[1]).write_text(log(41, 120, seed=2))
    run = read(tmp_path)
    assert [(s.first, s.last) for s in run.segments] == [(1, 60), (41, 120)]
    curve = by_source(run, "reward")
    assert curve.steps.tolist() == list(range(1, 121))
    newer = by_source(read(tmp_path / names[1]), "reward")
    assert curve.values[40:].tolist() == newer.values.tolist(), "of overlapping steps the newer"


@pytest.mark.parametrize("asked", ["train.log", "."])
def test_a_rotated_log_is_one_run(tmp_path, asked):
    whole = log(1, 130).splitlines(keepends=True)
    for name, first, last in (
        ("train.log.2", 0, 50),
        ("train.log.1", 50, 110),
        ("train.log", 110, 130),
    ):
        (tmp_path / name).write_text("".join(whole[first:last]))
    run = read(tmp_path / asked)
    assert by_source(run, "reward").steps.tolist() == list(range(1, 131))
    (tmp_path / "train.log.1").write_text(log(1, 60, seed=3))  # of an earlier run, which began anew
    (tmp_path / "train.log.2").unlink()
    (tmp_path / "train.log").write_text(log(1, 40))
    assert by_source(read(tmp_path / "train.log"), "reward").steps.tolist() == list(range(1, 41))


def test_the_last_words_of_a_job_stay_with_its_run(tmp_path):
    (tmp_path / "slurm-4711.out").write_text(log(1, 60))
    (tmp_path / "slurm-4712.out").write_text(log(61, 120))
    (tmp_path / "slurm-4712.err").write_text(
        "slurmstepd: error: *** JOB 4712 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"
    )
    run = read(tmp_path)
    assert run.last == 120 and [event.kind for event in run.events] == ["crash"]


def test_other_numbers_under_the_same_names_are_other_runs(tmp_path):
    for i in range(3):
        (tmp_path / f"lr_{i}.log").write_text(log(1, 80, seed=i))
    runs = read_all(tmp_path)
    assert sorted(run.name for run in runs) == ["lr_0", "lr_1", "lr_2"]
    # The same run printed and saved once more, with more digits, is no other run.
    one = runs[0]
    keys = ("reward", "entropy", "kl")
    rows = [
        {"step": s, **{key: float(by_source(one, key).values[s - 1]) for key in keys}}
        for s in range(1, 81)
    ]
    (tmp_path / "metrics.jsonl").write_text(
        "".join(json.dumps({**row, "reward": row["reward"] + 2e-4}) + "\n" for row in rows)
    )
    assert len(read_all(tmp_path)) == 3


def test_a_log_a_rank_and_a_log_a_process_are_one_run(tmp_path):
    for i in range(3):
        (tmp_path / f"train_rank{i}.log").write_text(log(1, 80, seed=i))
    assert len(read_all(tmp_path)) == 1
    other = tmp_path / "two"
    other.mkdir()
    (other / "trainer.log").write_text(log(1, 80))
    (other / "sampler.log").write_text(
        "".join(
            f"step {s} tokens={s * 7} wait={s / 3:.2f} kl={s / 7000:.5f}\n" for s in range(1, 81)
        )
    )
    assert len(read_all(other)) == 1


def test_a_console_without_steps_beside_the_state_of_a_resumed_run_is_no_other_run(tmp_path):
    rows = [
        {
            "loss": 0.01,
            "reward": s / 50 + 0.0037 * (s % 7),
            "entropy": 2 - s / 45,
            "completions/mean_length": 80.0 + s,
        }
        for s in range(1, 41)
    ]
    history = [{"step": s, **row} for s, row in enumerate(rows, 1)]
    (tmp_path / "trainer_state.json").write_text(
        json.dumps({"logging_steps": 1, "log_history": history})
    )
    for said in (
        "GRPOConfig(logging_steps=1, beta=0.04)\n",
        "",
        "\r100%|x| 20/20 [00:18<00:00,  3.86s/it]\n",
    ):
        printed = "".join(
            f"{row}\n" for row in rows[20:]
        )  # it went on from step 20 and counts anew
        (tmp_path / "stdout.log").write_text(said + printed)
        (run,) = read_all(tmp_path)
        assert sorted(path.rsplit("/", 1)[1] for path in run.sources) == [
            "stdout.log",
            "trainer_state.json",
        ]


@pytest.mark.parametrize("name", ["trainer_state.json", "train_log.json", "grpo_history.json"])
def test_a_log_named_like_a_configuration_is_read_as_a_log(tmp_path, name):
    rows = [{"step": s, "reward": s / 40, "entropy": 2 - s / 45} for s in range(1, 41)]
    (tmp_path / name).write_text(json.dumps({"log_history": rows}))
    (tmp_path / "training_args.json").write_text('{"learning_rate": 1e-6}')
    run = read(tmp_path)
    assert run.logged == 40 and run.config["lr"].value == 1e-6


@pytest.mark.parametrize("label", ["", "[rank{r}]: ", "{r}: ", "[default{r}]:", "[1,{r}]<stdout>:"])
@pytest.mark.parametrize(
    "form",
    [
        "step {s} reward={v:.3f} entropy=1.0",
        "[{s:4d}] reward={v:.3f} entropy=1.0",
        "step:{s} - reward:{v:.3f} - actor/entropy:1.0",
    ],
)
def test_rows_of_all_ranks_are_averaged_and_restart_nothing(tmp_path, label, form):
    rnd = random.Random(3)
    rows = sorted((s + rnd.random() * 1.1 * (s > 2), r, s) for s in range(1, 101) for r in range(4))
    path = tmp_path / "train.log"
    path.write_text(
        "".join(
            label.format(r=r) + form.format(s=s, v=s / 100 + r / 1000) + "\n" for _, r, s in rows
        )
    )
    run = read(path)
    curve = by_source(run, "reward")
    assert len(run.segments) == 1
    assert curve.steps.tolist() == list(range(1, 101))
    assert np.allclose(curve.values, curve.steps / 100 + 0.0015, atol=1e-3)


def test_a_restart_of_all_ranks_is_one(tmp_path):
    steps = [*range(1, 61), *range(41, 101)]
    path = tmp_path / "train.log"
    path.write_text(
        "".join(
            f"[rank{r}]: step {s} reward={s / 100} entropy=1.0\n" for s in steps for r in range(4)
        )
    )
    assert [(s.first, s.last) for s in read(path).segments] == [(1, 60), (41, 100)]


def test_the_newest_state_wins_and_the_others_must_agree(tmp_path):
    def save(step, shift=0.0):
        rows = [
            {
                "step": s,
                "reward": s / 100 + (shift if s > 5 else 0),
                "kl": 0.01,
                "completions/mean_length": 80.0,
            }
            for s in range(1, step + 1)
        ]
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir(exist_ok=True)
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": rows}))

    for step in (10, 20, 30):
        save(step)
    run = read(tmp_path)
    assert run.last == 30 and not run.events
    save(10, shift=0.1)
    run = read(tmp_path)
    (event,) = run.events
    assert event.kind == "states-disagree" and event.step == 6 and "checkpoint-10" in event.at
    for lang, word in (("en", "step 6"), ("zh", "第 6 步")):
        assert word in text.render(diagnose_all(tmp_path), lang)


def test_many_runs_are_a_table_worst_first(tmp_path):
    (tmp_path / "fine.log").write_text(log(1, 80))
    (tmp_path / "broken.log").write_text(
        "".join(
            f"step {s} reward={0.4:.3f} entropy={max(0.01, 1.8 - max(0, s - 30) / 10):.3f} kl={s / 5000:.4f}\n"
            for s in range(1, 81)
        )
    )
    found = diagnose_all(tmp_path)
    assert [answer.run.name for answer in found] == ["broken", "fine"]
    for lang in ("en", "zh"):
        lines = text.render(found, lang).splitlines()
        assert max(columns(line) for line in lines) <= WIDTH
        places = [
            next(i for i, line in enumerate(lines) if name in line) for name in ("broken", "fine")
        ]
        assert places == sorted(places) and "entropy-collapse" in lines[places[0]]
        assert "| broken |" in markdown.render(found, lang)
    assert "80 steps" in text.render(found, "en", everything=True)
