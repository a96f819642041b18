"""Every trainer's own layout is recognised and read right; every number that is not what it is called is converted."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from runs.make_trainer_logs import STEPS, numbers

from klinic.errors import UnreadableInput
from klinic.read import read
from klinic.sources.console.reader import Console
from klinic.sources.rows import Reading
from klinic.trainers import GENERIC, tables

RUNS = Path(__file__).parent / "runs"
TOKEN, SEQ = "token_mean/response_only", "seq_mean_token_mean/response_only"

# folder, trainer, first step, {canonical name: which of the made numbers, or a value at the fourth step}
LOGS = [
    (
        "slime",
        "slime",
        0,
        {
            "reward/seq_mean/raw": "reward",
            f"entropy/{SEQ}": "entropy",
            f"kl_ref/k3/{SEQ}": "kl",
            f"kl_ref/k1/{SEQ}": "kl",
            f"kl_rollout/abs/{SEQ}": "mismatch",
            "clip_frac/seq_mean_token_mean/active": "clip",
            "groups/zero_std_frac": 3 / 16,
            "len/response_mean": "len",
            "trunc/frac_finish_length": "trunc",
            "grad_norm/pre_clip": "grad",
        },
    ),
    ("miles", "miles", 0, {"reward/seq_mean/raw": "reward", "mismatch_ess/share": 0.99}),
    (
        "openrlhf",
        "openrlhf",
        1,
        {
            "reward/seq_mean/raw": "reward",
            f"entropy/{TOKEN}": "entropy",
            f"kl_ref/k1/{SEQ}": "kl",
            f"kl_rollout/k1/{TOKEN}": "mismatch",
            "len/response_mean": "len",
        },
    ),
    (
        "prime_rl",
        "prime_rl",
        1,
        {
            "reward/seq_mean/raw": "reward",
            f"entropy/{TOKEN}": "entropy",
            f"kl_rollout/k3/{TOKEN}": "mismatch",
            "groups/zero_std_frac": 0.062,
            "trunc/frac_finish_length": "trunc",
            "len/response_mean": "len",
            "staleness/versions_mean": 0.6,
        },
    ),
    (
        "areal",
        "areal",
        1,
        {
            "reward/seq_mean/raw": "reward",
            "len/response_mean": "len",
            "acc/seq_mean": "acc",
            f"kl_ref/k3/{TOKEN}": "kl",
            f"kl_old/k1/{TOKEN}": "mismatch",
            f"entropy/{TOKEN}": "entropy",
            "clip_frac/token_mean/active": "clip",
        },
    ),
    (
        "skyrl/console",
        "skyrl",
        1,
        {
            "reward/seq_mean/raw": "reward",
            "len/response_mean": "len",
            f"entropy/{TOKEN}": "entropy",
            f"kl_ref/k3/{SEQ}": "kl",
            f"kl_rollout/abs/{TOKEN}": "mismatch",
        },
    ),
    (
        "skyrl/status",
        "skyrl",
        1,
        {
            "reward/seq_mean/raw": "reward",
            "acc/pass_at_5": "acc",
            f"entropy/{TOKEN}": "entropy",
            f"kl_ref/k3/{SEQ}": "kl",
        },
    ),
    (
        "nemo_rl",
        "nemo_rl",
        1,
        {
            "reward/seq_mean/raw": "reward",
            "len/response_mean": "len",
            "kl_rollout/k3/token_mean/gen_over_train": "mismatch",
        },
    ),
    (
        "roll",
        "roll",
        0,
        {
            "reward/seq_mean/raw": "reward",
            "acc/seq_mean": "acc",
            f"entropy/{TOKEN}": "entropy",
            "trunc/frac_at_max_len": "trunc",
            f"kl_old/k1/{TOKEN}": "mismatch",
        },
    ),
    (
        "ms_swift",
        "ms_swift",
        1,
        {"reward/seq_mean/raw": "reward", f"entropy/{SEQ}": "entropy", "reward_std/group": 0.4},
    ),
    (
        "unsloth",
        "unsloth",
        1,
        {"reward/seq_mean/raw": "reward", "len/response_mean": "len", f"kl_ref/k3/{SEQ}": "kl"},
    ),
    (
        "open_r1",
        "open_r1",
        1,
        {"reward/seq_mean/raw": "reward", "acc/seq_mean": "acc", f"kl_ref/k3/{TOKEN}": "kl"},
    ),
    (
        "tinker_cookbook",
        "tinker_cookbook",
        0,
        {
            "reward/seq_mean/raw": "reward",
            "acc/seq_mean": "acc",
            "len/response_mean": "len",
            "groups/zero_std_frac": 0.1,
            f"kl_rollout/k1/{TOKEN}": "mismatch",
        },
    ),
    (
        "open_instruct",
        "open_instruct",
        1,
        {
            f"kl_ref/k3/{TOKEN}": "kl",
            f"entropy/{TOKEN}": "entropy",
            "len/response_mean": "len",
            "trunc/frac_finish_length": "trunc",
            "groups/zero_std_frac": 0.1,
        },
    ),
    (
        "rllm",
        "rllm",
        1,
        {
            "reward/seq_mean/raw": "reward",
            "groups/zero_std_frac": 0.1,
            "len/response_mean": "len",
            "grad_norm/pre_clip": "grad",
        },
    ),
    ("llamafactory", "llamafactory", 1, {"reward/seq_mean/raw": "reward", "lr": 1e-5}),
    (
        "torchtune",
        "torchtune",
        1,
        {"reward/seq_mean/raw": "reward", "acc/seq_mean": "acc", f"kl_ref/k3/{SEQ}": "kl"},
    ),
    (
        "deepspeed_chat",
        "deepspeed_chat",
        0,
        {"reward/seq_mean/raw": "reward", "value_loss/half_mse_clipped": 0.05},
    ),
    (
        "trlx",
        "trlx",
        1,
        {"reward/seq_mean/raw": "reward", "kl_ref/k3/token_mean/all_positions": "kl"},
    ),
    ("trl_ppo", "trl_ppo", 1, {"reward/seq_mean/raw": "reward", "entropy/unknown": "entropy"}),
    ("minimind", GENERIC, 1, {"len/unknown": "len", "policy_loss/unknown": -0.0001}),
]


@pytest.mark.parametrize(("folder", "trainer", "first", "expected"), LOGS)
def test_a_log_is_recognised_and_read_right(
    folder: str, trainer: str, first: int, expected: dict[str, str | float]
) -> None:
    run = read(RUNS / folder)
    assert run.trainer.name == trainer
    assert trainer == GENERIC or run.trainer.because
    assert (run.first, run.last, run.logged) == (first, first + STEPS - 1, STEPS)
    for name, wanted in expected.items():
        curve = run.curves[name]
        at = int(np.flatnonzero(curve.steps == first + 3)[0])
        value = numbers(3)[wanted] if isinstance(wanted, str) else wanted
        # Consoles round to three or four decimals, NeMo-RL's and AReaL's lengths to five digits.
        assert curve.values[at] == pytest.approx(value, rel=1e-3, abs=6e-4), name


def test_evaluations_stand_at_their_step() -> None:
    assert read(RUNS / "openrlhf").curves["eval/gsm8k/acc"].steps.tolist() == [4, 8, 12]
    assert read(RUNS / "nemo_rl").curves["eval/main/acc"].steps.tolist() == [4, 8, 12]


@pytest.mark.parametrize("name", sorted(set(tables()) - {GENERIC}))
def test_a_table_says_what_a_reader_of_its_report_needs(name: str) -> None:
    table = tables()[name]
    assert table.recognise.keys or table.recognise.text
    for knob in ("lr", "kl_coef", "temperature", "clip_range"):
        assert knob in table.knob or knob in table.without or name in WITHOUT.get(knob, ()), knob
    for role in ("reward", "kl", "entropy", "mismatch") if name != "lab" else ():
        assert role in table.log or name in WITHOUT.get(role, ()), role


# Trainers without such a knob, or whose log can never hold the role.
WITHOUT = {
    "lr": (),
    "temperature": (),
    "clip_range": ("prime_rl", "trl", "lab"),
    "mismatch": ("deepspeed_chat", "llamafactory", "trlx", "lab"),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "step 12: {'loss': nan, 'reward': 1}\nstep 13: {'loss': -inf, 'reward': 2}",
            {"reward": [1, 2], "loss": [math.nan, -math.inf]},
        ),
        (
            "INFO - Step 5:\n{'reward': '3',\n 'kl': {'mean': 0.5,\n  'max': 1}}\nINFO - Step 6:\n{'reward': '4'}",
            {"reward": [3, 4], "kl/mean": [0.5]},
        ),
        (
            "Iter 7: Train loss 0.5, KL 0.001\nIter 8: Train loss 0.6, KL 0.002",
            {"KL": [0.001, 0.002]},
        ),
        ("| Step | reward |\n|---|---|\n| 1 | 0.2 |\n| 2 | 0.3 |", {"reward": [0.2, 0.3]}),
        (
            "step 3, reward/mean: 0.4, kl: 0.1\nstep 4, reward/mean: 0.5, kl: 0.2",
            {"kl": [0.1, 0.2]},
        ),
        (
            "(Worker pid=3) [rank1]: step 1: {'reward': 1, 'kl': 0} [repeated 7x across cluster] (Ray deduplicates logs)",
            {"reward": [1]},
        ),
        (
            '[2026-11-30] [x.py (1)] metrics_tag: {"step": 3, "metrics": {"reward": 0.4, "kl": 0.1}}',
            {"reward": [0.4]},
        ),
    ],
)
def test_layouts_of_the_console(text: str, expected: dict[str, list[float]]) -> None:
    reading = Reading("test")
    Console(reading).read(io.BytesIO(f"{text}\n".encode()), b"")
    for key, values in expected.items():
        assert np.array_equal(list(reading.columns[key].values), values, equal_nan=True), key


@pytest.mark.parametrize("text", ['{"cells": [', '{"cells": 3}', '{"cells": [{"outputs": 1}]}'])
def test_a_broken_notebook_is_an_error_or_no_run(text: str, tmp_path: Path) -> None:
    place = tmp_path / "a.ipynb"
    place.write_text(text)
    try:
        assert not read(place).curves
    except UnreadableInput as trouble:
        assert trouble.hint
