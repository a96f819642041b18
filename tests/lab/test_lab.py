"""The lab: tasks, verifier, advantages, exact replay, faults that arrive, and what the command line says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from klinic.errors import BadUsage, UnreadableInput
from klinic.lab import advantages, rewards
from klinic.lab.adam import through_half_precision
from klinic.lab.faults import FAULTS, STRENGTHS, start_of
from klinic.lab.manifest import TESTS, manifest
from klinic.lab.runs import resume, run
from klinic.lab.settings import DEFAULTS, GROUPS, Settings, changed, repairs
from klinic.lab.tasks import TASKS, Teacher, chain, draw
from klinic.lab.trainer import Trainer
from klinic.lab.warmup import BASES, load
from klinic.lab.words import ID, TOKENS, text


def tokens(line: str) -> list[int]:
    return [ID[word] for word in line.split()]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_chains_end_in_the_answer() -> None:
    digits = (3, 7, 2, 7)
    assert {task: chain(task, digits)[-1] for task in TASKS} == {
        "max": 7,
        "min": 2,
        "odd": 3,
        "sum": 19,
    }


def test_a_teacher_without_noise_is_always_right() -> None:
    random = Random(0)
    teacher = Teacher(slip=0)
    for task in TASKS:
        for _ in range(50):
            problem = draw(random, task, random.randrange(2, 6))
            assert rewards.is_right(teacher.demonstrate(random, problem, noise=0), problem.answer)


@pytest.mark.parametrize(
    ("line", "strict", "any_", "last", "lenient"),
    [
        ("<think> so </think> <answer> 7 </answer> <eos>", True, True, True, True),
        ("<think> so </think> <answer> 3 , 7 </answer> <eos>", False, True, True, True),
        ("<think> so </think> <answer> 7 , 3 </answer> <eos>", False, True, False, True),
        ("<think> so </think> <answer> </answer> <eos>", False, False, False, True),
        ("<think> so 7 </think> <eos>", False, False, True, True),
        ("<think> so </think> <answer> 3 </answer> <eos>", False, False, False, False),
        (
            "<think> </think> <answer> 7 </answer> <answer> 3 </answer> <eos>",
            False,
            True,
            False,
            False,
        ),
    ],
)
def test_extractors_and_their_holes(
    line: str, strict: bool, any_: bool, last: bool, lenient: bool
) -> None:
    row = tokens(line)
    found = [rewards.extracted(row, "7", how) for how in ("strict", "any", "last", "lenient")]
    # "lenient" fails to parse a list and calls it right: that is the bug.
    assert found == [strict, any_, last, lenient]


def test_group_advantages() -> None:
    reward = np.array([1.0, 0, 0, 1, 1, 1, 1, 1])
    normal = advantages.group_advantages(reward, 4, "group", "mean")
    assert normal[:4] == pytest.approx([1, -1, -1, 1], rel=1e-3)
    assert normal[4:].tolist() == [0, 0, 0, 0]  # no variance, no advantage
    raw = advantages.group_advantages(reward, 4, "none", "none")
    assert raw.tolist() == reward.tolist()


def test_gae_against_the_definition() -> None:
    rng = np.random.default_rng(0)
    values, mask = rng.normal(0, 1, (2, 5)), np.ones((2, 5))
    mask[1, 3:] = 0
    values = values * mask
    reward, decay = np.array([1.0, -2.0]), 0.9
    got, returns = advantages.gae(reward, values, mask, decay)
    for b, length in enumerate((5, 3)):
        r = np.zeros(length)
        r[-1] = reward[b]
        following = np.append(values[b, 1:length], 0)
        delta = r + following - values[b, :length]
        for t in range(length):
            want = sum(decay ** (k - t) * delta[k] for k in range(t, length))
            assert got[b, t] == pytest.approx(want)
            assert returns[b, t] == pytest.approx(want + values[b, t])
    assert not got[1, 3:].any()


def test_same_seed_same_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        run(tmp_path / name, "reward-hacking-list", seed=4, steps=12)
    for part in ("metrics.jsonl", "rollouts.jsonl", "label.json", "run_config.json"):
        assert (tmp_path / "a" / part).read_bytes() == (tmp_path / "b" / part).read_bytes()
    run(tmp_path / "c", "reward-hacking-list", seed=5, steps=12)
    assert (tmp_path / "a/metrics.jsonl").read_bytes() != (
        tmp_path / "c/metrics.jsonl"
    ).read_bytes()


@pytest.mark.parametrize("fault", ["healthy", "value-blowup", "staleness", "weight-sync-failure"])
def test_a_resume_replays_bit_for_bit(tmp_path: Path, fault: str) -> None:
    run(tmp_path / "whole", fault, seed=2, steps=16, at=5, checkpoint_every=4)
    resume(tmp_path / "whole/checkpoint-8", tmp_path / "rest", steps=8)
    assert rows_of(tmp_path / "rest") == rows_of(tmp_path / "whole")[8:]


def test_a_change_arrives_even_at_the_step_the_fault_is_switched(tmp_path: Path) -> None:
    run(tmp_path / "old", "reward-hacking-echo", seed=2, steps=8, at=4, checkpoint_every=4)
    place = tmp_path / "old/checkpoint-4"
    resume(place, tmp_path / "control", steps=6)
    resume(place, tmp_path / "arm", steps=6, changes={"lr": 1e-4})
    resume(place, tmp_path / "fixed", steps=6, fix=("reward",))
    control, arm, fixed = (rows_of(tmp_path / name) for name in ("control", "arm", "fixed"))
    assert {row["lr"] for row in arm} != {row["lr"] for row in control}
    assert arm[-1]["lr"] < control[-1]["lr"] / 5
    assert control[-1]["reward_echo"] > 0 and fixed[-1]["reward_echo"] == 0
    config = json.loads((tmp_path / "arm/run_config.json").read_text())
    assert config["lr"] == 1e-4


def test_reseed_changes_the_samples_only(tmp_path: Path) -> None:
    run(tmp_path / "old", seed=2, steps=4, checkpoint_every=2)
    resume(tmp_path / "old/checkpoint-2", tmp_path / "same", steps=2)
    resume(tmp_path / "old/checkpoint-2", tmp_path / "other", steps=2, reseed=1)
    assert rows_of(tmp_path / "same") != rows_of(tmp_path / "other")
    assert rows_of(tmp_path / "same")[0]["lr"] == rows_of(tmp_path / "other")[0]["lr"]


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_runs_and_differs_from_healthy_in_what_it_lists(name: str) -> None:
    fault = FAULTS[name]
    for strength in STRENGTHS:
        before = start_of(fault, "max", 0)
        after = changed(before, fault.switched(strength))
        differ = {k for k in DEFAULTS if getattr(before, k) != getattr(after, k)}
        assert differ <= set(fault.settings)
        assert bool(differ) == bool(fault.settings)
    trainer = Trainer(changed(start_of(fault, "max", 0), fault.switched("usual")), seed=1)
    row, samples = trainer.train_step()
    assert np.isfinite(row["reward"]) and len(samples) == trainer.settings.prompts * 8
    assert fault.failure is None or fault.failure in TESTS
    assert set(fault.what) == {"en", "zh"}


def test_at_step_zero_the_trainer_is_on_policy() -> None:
    row, _ = Trainer(Settings(), seed=1).train_step()
    assert row["kl"] == pytest.approx(0, abs=1e-6)
    assert row["mismatch_abs"] == pytest.approx(0, abs=1e-5)
    assert row["lag"] == 0 and row["clip_frac"] < 0.01
    assert row["adv_std"] == pytest.approx(np.sqrt(1 - row["frac_zero_std"]), abs=2e-3)


def test_everything_the_minimal_dashboard_asks_for_is_logged() -> None:
    grpo, _ = Trainer(Settings(), seed=1).train_step()
    ppo, _ = Trainer(Settings(algorithm="ppo"), seed=1).train_step()
    asked = [
        "reward",
        "acc",
        "entropy",
        "kl",
        "adv_std",
        "clip_frac",
        "ratio_mean",
        "len",
        "reward_correct",
        "reward_format",
        "reward_p10",
        "reward_p90",
        "ratio_p01",
        "ratio_p99",
        "ratio_geo",
        "ratio_outside",
        "kl_seq",
        "entropy_by_position",
        "len_p10",
        "len_p90",
        "trunc",
        "eos_rate",
        "grad_norm",
        "frac_zero_std",
        "uniq",
        "mismatch_abs",
        "policy_version",
        "lag",
        "eval_acc",
        "eval_other",
        "verifier_err",
    ]
    assert not [name for name in asked if name not in grpo]
    assert {"value_loss", "explained_var"} <= set(ppo)


def test_half_precision_overflows() -> None:
    kept = through_half_precision({"w": np.array([0.01, 0.2], np.float32)}, 8e5)["w"]
    assert np.isfinite(kept[0]) and not np.isfinite(kept[1])


def test_a_broken_policy_is_logged_as_nan_and_the_run_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "run", "nan", steps=6, strength="strong", changes={"loss_scale": 1e9})
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 6 and np.isnan(rows[-1]["loss"])
    assert json.loads((tmp_path / "run/label.json").read_text())["manifest"]["shows"]


def test_manifest_needs_the_test_to_hold_until_the_end() -> None:
    good, bad = {"kl": 0.001, "acc": 0.5}, {"kl": 2.0, "acc": 0.3}
    late = [{"step": i, **(good if i < 50 else bad)} for i in range(100)]
    spike = [{"step": i, **(bad if 50 <= i < 60 else good)} for i in range(100)]
    assert manifest("kl-runaway", late)["step"] in range(48, 54)
    assert manifest("kl-runaway", spike) == {"shows": False, "step": None}
    assert manifest(None, late) == {"shows": None, "step": None}


def test_repairs_put_a_group_back() -> None:
    assert repairs(("reward",))["extractor"] == "strict"
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names)) and set(names) <= set(DEFAULTS)
    with pytest.raises(BadUsage):
        repairs(("luck",))


def test_bad_names_are_answered(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="entropy-colapse"):
        run(tmp_path / "x", "entropy-colapse")
    with pytest.raises(BadUsage, match="temprature"):
        run(tmp_path / "x", changes={"temprature": 2})
    with pytest.raises(BadUsage):
        run(tmp_path / "x", changes={"lr": "fast"})
    with pytest.raises(UnreadableInput):
        resume(tmp_path, tmp_path / "y")
    run(tmp_path / "z", steps=1)
    with pytest.raises(BadUsage, match="not empty"):
        run(tmp_path / "z", steps=1)


def test_bases_are_shipped_and_small() -> None:
    for index, base in enumerate(BASES):
        weights = load(index)
        assert weights["recurrent"].shape[0] == base.hidden
        assert weights["output"].shape[1] == len(TOKENS)


def test_text_joins_digits() -> None:
    assert text(tokens("<answer> 1 9 </answer> <eos>")) == "<answer> 19 </answer> <eos>"


def klinic(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "klinic", *words], capture_output=True, text=True, timeout=120
    )


def test_command_line(tmp_path: Path) -> None:
    listed = klinic("lab", "list", "--lang", "zh")
    assert "熵项符号写反" in listed.stdout and all(name in listed.stdout for name in FAULTS)
    assert "--fix reward" in klinic("lab", "list", "--settings").stdout
    out = tmp_path / "run"
    made = klinic(
        "lab", "run", "--fault", "no-learning-lr", "--steps", "12", "-o", str(out), "--lang", "en"
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines()[0] == str(out) and made.stderr == ""
    again = klinic("lab", "run", "-o", str(out))
    assert again.returncode == 2 and "hint:" in again.stderr
    typo = klinic("lab", "run", "--fault", "helthy", "-o", str(tmp_path / "x"))
    assert typo.returncode == 2 and "did you mean healthy" in typo.stderr
    went_on = klinic(
        "lab",
        "resume",
        str(out / "checkpoint-12"),
        "--set",
        "lr=0.001",
        "--steps",
        "3",
        "-o",
        str(tmp_path / "on"),
    )
    assert went_on.returncode == 0, went_on.stderr
    assert [row["step"] for row in rows_of(tmp_path / "on")] == [12, 13, 14]


def test_klinic_reads_it_as_the_lab(tmp_path: Path) -> None:
    from klinic.read import read

    run(tmp_path / "run", "lr-too-high", steps=4, checkpoint_every=2)
    found = read(tmp_path / "run")
    assert found.trainer.name == "lab"
    assert found.curves["kl_ref/k3/token_mean/response_only"].steps.tolist() == [0, 1, 2, 3]
    assert found.setting("lr") == 1.2e-2 and found.setting("updates_per_batch") == 12
    assert [c.step for c in found.checkpoints] == [0, 2, 4] and not found.checkpoints[0].missing
