"""KlinicCallback in real GRPO runs: a sick one is stopped, a healthy one is not, and nothing it does breaks either."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from klinic.read import read

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).resolve().parent / "tiny_grpo.py"
ADDED = (
    "adv_std/group_normalised", "adv_min/token/response_only", "adv_max/token/response_only",
    "ratio_mean/new_over_old/token_mean", "ratio_geo/new_over_old", "ratio_quantile/new_over_old/p99",
    *(f"entropy_by_position/{i}" for i in range(8)),
)  # fmt: skip


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    pytest.importorskip("trl", reason="the torch extra is not installed")
    folder = tmp_path_factory.mktemp("runs")  # the base model lies there, made by the first run

    def run(name, *words):
        done = subprocess.run(
            [sys.executable, SCRIPT, name, *map(str, words)],
            cwd=folder, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return folder / name, json.loads(done.stdout.splitlines()[-1]), done.stderr

    return run


def test_a_healthy_run_goes_to_its_end_with_what_trl_does_not_log(train):
    out, end, told = train(
        "healthy", "--steps", 40, "--stop_on", "act", "--report_to", "tensorboard"
    )
    assert end["steps"] == 40 and not end["quiet"]
    document = json.loads((out / "klinic.json").read_text())
    assert document["status"] in ("healthy", "caution") and document["run"]["trainer"] == "trl"
    assert not [
        f for f in document["findings"] if f["status"] == "present" and f["severity"] != "caution"
    ]
    run = read(out / "trainer_state.json")
    for name in ADDED:
        assert run.curves[name].metric.definition and len(run.curves[name].values) > 20, name
    # TRL's own zero-variance share says what the std of normalised advantages must be.
    zero, adv = run.curves["groups/zero_std_frac"], run.curves["adv_std/group_normalised"]
    assert adv.values[:1] == pytest.approx((1 - zero.values[:1]) ** 0.5, abs=0.01)
    assert run.curves["ratio_mean/new_over_old/token_mean"].values == pytest.approx(1, abs=0.05)
    events = read(next(out.rglob("events.out.tfevents.*")))
    assert set(ADDED) <= set(events.curves)  # every tracker TRL reports to gets them
    assert "klinic's callback" not in told


def test_a_run_whose_steps_are_far_too_large_is_saved_and_stopped(train):
    out, end, told = train(
        "sick", "--steps", 150, "--learning_rate", 0.1, "--stop_on", "stop", "--save_on", "act"
    )
    assert end["steps"] < 150 and end["steps"] % 10 == 0
    document = json.loads((out / "klinic.json").read_text())
    assert document["status"] == "failing" and document["severity"] == "stop"
    assert (out / f"checkpoint-{end['steps']}").is_dir()
    assert told.count(f"hint: klinic explain {document['failure']}") == 1


def test_what_fails_inside_is_said_once_and_the_training_goes_on(train):
    out, end, told = train(
        "broken", "--steps", 12, "--every", 5, "--break_it", "--stop_on", "caution"
    )
    assert end["steps"] == 12 and end["quiet"] and not (out / "klinic.json").exists()
    assert told.count("klinic's callback stops watching: TypeError") == 1
    # What klinic computes changes nothing that TRL does: the same numbers, to the last bit.
    there, here = (
        read(place / "trainer_state.json").curves for place in (out.parent / "healthy", out)
    )
    for name in ("loss/total", "grad_norm/pre_clip", "entropy/token_mean/response_only"):
        assert here[name].values.tolist() == there[name].values[:12].tolist(), name
