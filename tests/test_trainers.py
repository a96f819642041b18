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
from klinic.run import Setting
from klinic.sources.console.reader import Console
from klinic.sources.rows import Column, Reading
from klinic.trainers import GENERIC, tables
from klinic.trainers.convert import convert

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
        {"reward/seq_mean/raw": "reward", "acc/seq_mean": "acc", f"kl_ref/k3/{TOKEN}": "kl"},
    ),
    (
        "deepspeed_chat",
        "deepspeed_chat",
        0,
        {"reward/seq_mean/raw": "reward", "value_loss/half_mse_clipped": 0.05},
    ),
    ("trlx", "trlx", 1, {"reward/seq_mean/raw": "reward", f"kl_ref/k3/{TOKEN}": "kl"}),
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


# trainer, key, value, other keys of the row, what the configuration states, canonical name, value; None: not comparable
NOT_WHAT_THEY_ARE_CALLED = [
    ("slime", "train/entropy_loss", 1.5, {}, {}, f"entropy/{SEQ}", 1.5),
    ("slime", "rollout/rewards", 1e-8, {}, {}, "reward_normalised/seq_mean", None),
    ("slime", "train/critic-value_loss", 0.4, {}, {}, "value_loss/seq_mean_token_mean/mse_clipped", 0.2),
    ("slime", "train/kl_loss", -0.1, {}, {}, f"kl_ref/k1/{SEQ}", -0.1),
    ("slime", "train/kl_loss", 0.1, {}, {"kl_estimator": "low_var_kl"}, f"kl_ref/k3/{SEQ}", 0.1),
    ("slime", "rollout/log_probs", -0.2, {"rollout/ref_log_probs": -0.3}, {}, f"kl_ref/k1/{SEQ}", 0.1),
    ("slime", "rollout/zero_std/count_0.0", 4, {"rollout/zero_std/count_1.0": 4}, {"prompts_per_step": 32}, "groups/zero_std_frac", 0.25),
    ("slime", "rollout/dynamic_filter/drop_zero_std", 3, {}, {}, "groups/filtered_count/zero_std", None),
    ("miles", "rollout/weight_version/mean", 12, {}, {}, "staleness/oldest_version_mean", None),
    ("miles", "train/train_rollout_kl", 0.1, {}, {}, "kl_rollout/unstated/seq_mean_token_mean", None),
    ("openrlhf", "entropy_loss", 1.5, {}, {}, f"entropy/{TOKEN}", 1.5),
    ("openrlhf", "return", 1e-8, {}, {}, "reward/seq_sum/shaped", None),
    ("openrlhf", "kl", 0.2, {}, {"kl_estimator": "k3"}, f"kl_ref/k3/{SEQ}", 0.2),
    ("prime_rl", "is_masked/mean", 0.02, {}, {}, "clip_frac/seq_mean_token_mean/masked_by_probability", None),
    ("prime_rl", "loss/mean", 0.02, {}, {}, "loss/total", None),
    ("prime_rl", "Trainable", 0.9, {}, {}, "groups/zero_std_frac", 0.1),
    ("prime_rl", "off_policy/dropped", 3, {}, {}, "staleness/dropped_count", None),
    ("areal", "ppo_actor/update/approx_kl/avg", -0.1, {}, {}, f"kl_old/k1/{TOKEN}", 0.1),
    ("areal", "ppo_actor/update/behave_approx_kl/avg", -0.1, {}, {}, f"kl_rollout/k1/{TOKEN}", 0.1),
    ("areal", "ppo_actor/kl_rewards/avg", -0.02, {}, {"kl_coef": 0.1}, f"kl_ref/k1/{TOKEN}", 0.2),
    ("areal", "ppo_actor/kl_rewards/avg", -0.02, {}, {}, f"kl_ref/k1/{TOKEN}", None),
    ("areal", "ppo_actor/correct_n_seqs", 128, {"ppo_actor/n_seqs": 512}, {}, "acc/seq_mean", 0.25),
    ("areal", "ppo_actor/seq_len/avg", 300, {"ppo_actor/prompt_len/avg": 100}, {}, "len/response_mean", 200),
    ("areal", "ppo_actor/no_eos_ratios/avg", 0.1, {}, {}, "trunc_longest/frac_in_batch", None),
    ("areal", "ppo_actor/final_reward/avg", 0.1, {}, {}, "reward_per_token/shaped", None),
    ("skyrl", "policy/response_length", 1024, {}, {}, "len_padded/batch", None),
    ("skyrl", "policy/policy_loss", 0.1, {}, {}, "policy_loss/reduced", None),
    ("skyrl", "loss/avg_raw_advantages_abs", 0.8, {}, {}, "adv_abs_mean/token_mean", None),
    ("skyrl", "reward/num_zero_variance_filtered", 3, {}, {}, "groups/filtered_count", None),
    ("nemo_rl", "train/loss", 0.1, {}, {}, "loss/total", None),
    ("nemo_rl", "train/baseline_reward/pct_0", 25.0, {}, {}, "groups/all_wrong_frac", 0.25),
    ("nemo_rl", "train/baseline_reward/pct_mixed", 0.5, {}, {}, "groups/mixed_frac", 0.005),
    ("nemo_rl", "train/token_mult_prob_error", 1.02, {}, {}, "mismatch/abs_logp_diff/from_exp", 0.02),
    ("nemo_rl", "train/probs_ratio_max", 3.0, {}, {}, "ratio_quantile/max", None),
    ("roll", "critic/rewards/mean", 1e-8, {}, {}, "reward_normalised/seq_sum", None),
    ("roll", "actor/policykl", -0.1, {}, {}, f"kl_old/k1/{TOKEN}", 0.1),
    ("roll", "token/total_response_length/clip", 8, {"system/batch_size": 512}, {}, "trunc/frac_at_max_len", 8 / 512),
    ("roll", "actor/max_len_mask_ratio", 0.9, {}, {}, "trunc/frac_masked", 0.1),
    ("roll", "critic/right_response/advantages/std", 0.4, {}, {}, "adv_std_of/right", None),
    ("rllm", "batch/solve_all", 3, {}, {}, "groups/all_right_count", None),
    ("trl_ppo", "objective/kl", 2.0, {}, {}, "kl_ref/k1/seq_sum/response_only", 2.0),
    ("trl_ppo", "objective/entropy", 60.0, {}, {}, "entropy_seq/sum", None),
    ("trl_ppo", "policy/entropy_avg", 1.5, {}, {}, "entropy/unknown", None),
    ("torchtune", "num_stop_tokens", 20, {}, {}, "eos/count", None),
    ("torchtune", "kl", 2.0, {}, {}, "kl_ref/k1/seq_sum/response_only", 2.0),
    ("trlx", "policy/sqrt_kl", 3.0, {}, {}, "kl_ref/k3/seq_sum/response_only", 9.0),
    ("trlx", "policy/kl_per_token", 0.3, {}, {}, f"kl_ref/k3/{TOKEN}", 0.09),
    ("open_instruct", "val/stop_rate", 0.9, {}, {}, "trunc/frac_finish_length", 0.1),
    ("open_instruct", "unsolved_batch_size_ratio", 0.7, {}, {}, "acc/seq_mean", 0.3),
    ("open_instruct", "loss/kl_avg", 0.1, {}, {}, "loss_kl/times_beta", None),
    ("llamafactory", "accuracy", 0.7, {}, {}, "dpo/implicit_acc", None),
    ("deepspeed_chat", "actor_loss_sum", 7.0, {}, {}, "policy_loss_sum", None),
    ("ms_swift", "reward_std", 0.4, {}, {}, "reward_std/group", 0.4),
    ("unsloth", "kl", 0.4, {}, {}, f"kl_ref/k3/{SEQ}", 0.4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trainer", "key", "value", "others", "config", "name", "wanted"), NOT_WHAT_THEY_ARE_CALLED
)
def test_a_number_that_is_not_what_it_is_called_is_converted_or_marked(
    trainer: str,
    key: str,
    value: float,
    others: dict[str, float],
    config: dict[str, str | float],
    name: str,
    wanted: float | None,
) -> None:
    columns = {}
    for log_key, number in {key: value, **others}.items():
        columns[log_key] = Column()
        columns[log_key].steps.append(1)
        columns[log_key].values.append(number)
    table = tables()[trainer]
    stated = {knob: Setting(knob, table.knob[knob].flag, v, "test") for knob, v in config.items()}
    curve = convert(columns, table, stated, {}).curves[name]
    if wanted is None:
        assert curve.metric.conversion == "not comparable"
    else:
        assert math.isclose(curve.values[0], wanted, rel_tol=1e-9)


@pytest.mark.parametrize("name", sorted(set(tables()) - {GENERIC}))
def test_a_table_says_what_a_reader_of_its_report_needs(name: str) -> None:
    table = tables()[name]
    assert table.recognise.keys or table.recognise.text
    for knob in ("lr", "kl_coef", "temperature", "clip_range"):
        assert knob in table.knob or name in WITHOUT.get(knob, ()), knob
    for role in ("reward", "kl", "entropy", "mismatch") if name != "lab" else ():
        assert role in table.log or name in WITHOUT.get(role, ()), role


# Trainers without such a knob, or whose log can never hold the role.
WITHOUT = {
    "lr": (),
    "temperature": ("deepspeed_chat",),
    "clip_range": ("prime_rl", "trl", "lab", "llamafactory"),
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
    Console(reading).read(io.BytesIO(text.encode()), b"")
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
