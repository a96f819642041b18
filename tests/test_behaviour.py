"""What cannot be said in a page's block: slices, first actions by evidence, and which evaluation counts as held out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from klinic.diagnose import diagnose

STEPS = 120
RAMP = np.clip((np.arange(STEPS) - 40) / 40, 0, 1)


def run(folder, **curves):
    """A log of a hand-written loop. curves: key -> (n,) values; two underscores in a key stand for a slash."""
    rng = np.random.default_rng(0)
    noisy = {k.replace("__", "/"): v * (1 + rng.normal(0, 0.02, STEPS)) for k, v in curves.items()}
    place = folder / "metrics.jsonl"
    place.write_text(
        "".join(
            json.dumps({"step": i, **{key: float(v[i]) for key, v in noisy.items()}}) + "\n"
            for i in range(STEPS)
        )
    )
    return diagnose(place)


def finding(answer, slug):
    return next(f for f in answer.findings if f.failure == slug)


def level(value):
    return np.full(STEPS, value)


def late(shift):
    return np.clip((np.arange(STEPS) - 40 - shift) / 30, 0, 1)


def test_the_task_that_broke_first_is_the_slice(tmp_path):
    answer = run(
        tmp_path, reward=0.5 + 0.4 * RAMP, acc=0.4 + 0.4 * RAMP,
        eval_code=0.6 - 0.3 * late(15), eval_writing=0.7 - 0.4 * late(0), eval_math=level(0.8),
    )  # fmt: skip
    found = finding(answer, "eval-regression")
    assert found.slice == "eval=writing"
    assert [e.values["task"] for e in found.evidence] == ["writing", "code"]
    assert found.evidence[0].onset < found.evidence[1].onset


def test_a_task_of_the_training_data_can_be_the_slice(tmp_path):
    answer = run(
        tmp_path, reward=0.4 + 0.5 * RAMP, acc=0.5 - 0.25 * RAMP,
        acc__algebra=0.6 - 0.4 * late(0), acc__logic=0.5 - 0.3 * late(30),
    )  # fmt: skip
    found = finding(answer, "reward-hacking")
    assert found.status == "present" and found.slice == "task=algebra"
    told = [e.values for e in found.evidence if e.sentence in ("task-broke", "then-broke")]
    assert [v["task"] for v in told] == ["algebra", "logic"] and told[0]["step"] < told[1]["step"]


def test_the_tails_of_the_reward_are_said(tmp_path):
    answer = run(
        tmp_path, reward=0.4 + 0.5 * RAMP, acc=0.5 - 0.25 * RAMP, reward_p10=0.3 - 0.25 * RAMP,
        reward_std=0.2 + 0.3 * RAMP, reward_median=level(0.4), trunc=level(0.08),
        reward_truncated=0.3 + 0.58 * RAMP,
    )  # fmt: skip
    said = {e.sentence for e in finding(answer, "reward-hacking").evidence}
    assert {"tail-down", "spread-up", "few-high", "cut-paid"} <= said


def test_only_the_trained_task_is_held_out(tmp_path):
    learns, flat = 0.4 + 0.5 * RAMP, level(0.45)
    other = run(tmp_path, reward=learns, acc=learns, eval_mmlu=flat)
    assert finding(other, "eval-overfit").status == "not_checked" and other.status == "healthy"
    own = run(tmp_path, reward=learns, acc=learns, eval_acc=flat)
    assert finding(own, "eval-overfit").status == "present"
    once = run(tmp_path, reward=learns, acc=learns, eval_acc=flat, epoch=np.linspace(0, 0.9, STEPS))
    assert finding(once, "eval-overfit").status == "ruled_out"


@pytest.mark.parametrize(
    "more, first",
    [
        ({}, "easier_data"),
        ({"format_ok": level(0.01)}, "format_warm_up"),
        ({"partial": level(0.3)}, "partial_credit"),
    ],
)
def test_why_nothing_is_right_decides_what_comes_first(tmp_path, more, first):
    answer = run(tmp_path, reward=level(0.01), acc=level(0.01), frac_zero_std=level(0.95), **more)
    assert answer.main.failure == "too-hard" and answer.first_action.knob == first
    knobs = [a.knob for a in answer.then]
    assert first not in knobs and len(knobs) == len(set(knobs))


def test_loops_from_the_first_step_are_a_loading_fault(tmp_path):
    answer = run(tmp_path, reward=level(0.0), acc=level(0.0), repetition_rate=level(0.9))
    assert answer.main.failure == "repetition" and answer.first_action.knob == "load_weights"


def test_format_errors_are_told_from_the_verifiers_own(tmp_path):
    curves = {"reward": 0.6 - 0.3 * RAMP, "acc": 0.5 - 0.3 * RAMP}
    unread = run(tmp_path, **curves, format_error=0.02 + 0.4 * RAMP, verifier_error=level(0.0))
    assert finding(unread, "format-collapse").status in ("present", "consequence")
    assert finding(unread, "verifier-error").status == "ruled_out"
    failed = run(tmp_path, **curves, format_error=level(0.02), verifier_error=0.4 * RAMP)
    assert finding(failed, "format-collapse").status == "ruled_out"
    assert failed.main.failure == "verifier-error"


def test_an_evaluation_of_facts_is_no_accuracy_of_the_task(tmp_path):
    answer = run(tmp_path, judge_score=0.4 + 0.4 * RAMP, reward=0.4 + 0.4 * RAMP,
                 eval_truthfulqa=0.6 - 0.25 * late(0))  # fmt: skip
    assert finding(answer, "reward-hacking").status == "not_checked"
    assert answer.main.failure == "factuality-drop" and answer.main.slice == "eval=truthfulqa"


def test_refusals_of_harmful_questions_may_rise(tmp_path):
    up = 0.05 + 0.4 * RAMP
    wanted = run(tmp_path, reward=0.4 + 0.3 * RAMP, acc=level(0.5), harmful_refusal_rate=up)
    assert finding(wanted, "refusal-rise").status == "not_checked"
    harmless = run(tmp_path, reward=0.4 + 0.3 * RAMP, acc=0.4 + 0.1 * RAMP, over_refusal_rate=up)
    assert finding(harmless, "refusal-rise").status == "present"
