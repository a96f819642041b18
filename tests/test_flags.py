"""Flags as each trainer takes them, what a trainer has no setting for, and where each setting was read."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from blocks import blocks_in, run_of

from klinic.advise import how_to_log
from klinic.advise.knobs import command, flag_in, line_in
from klinic.diagnose import judge
from klinic.render.as_json import how
from klinic.run import Run, Trainer
from klinic.trainers import GENERIC, tables

SOURCE = Path(__file__).parent.parent / "src" / "klinic"
FAILURES, TABLES = SOURCE / "failures", SOURCE / "trainers"
NO_BONUS = [name for name, table in tables().items() if "entropy_coef" in table.without]


def of(name: str, page: str) -> Run:
    """The run of a page's first block, as if that trainer had logged it."""
    run = run_of(blocks_in(FAILURES / f"{page}.en.md")[0], 0)
    return replace(run, trainer=Trainer(name, tables()[name].title, "test"))


# trainer, knob, next value in klinic's words, the line as this trainer takes it
LINES = [
    ("trl", "temperature", 1.1, "--temperature 1.1"),
    ("trl", "loss_aggregation", "dr_grpo", "--loss_type dr_grpo"),
    ("open_r1", "temperature", 0.8, "temperature: 0.8"),
    ("open_r1", "mask_truncated", True, "mask_truncated_completions: true"),
    ("llamafactory", "lr", 5e-6, "learning_rate: 5e-06"),
    ("verl", "is_correction", True, "algorithm.rollout_correction.rollout_is=token"),
    ("verl", "importance_level", "sequence", "actor_rollout_ref.actor.policy_loss.loss_mode=gspo"),
    ("slime", "is_correction", True, "--use-tis"),
    ("slime", "grad_checkpoint", "true", "--recompute-granularity full"),
    ("slime", "dynamic_sampling", True, "--dynamic-sampling-filter-path slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std"),
    ("miles", "rollout_sleep", "true", "--offload-rollout"),
    ("openrlhf", "grad_checkpoint", "true", "--actor.gradient_checkpointing_enable"),
    ("skyrl", "dynamic_sampling", True, "trainer.algorithm.dynamic_sampling.type=filter"),
    ("skyrl", "is_correction", True, "trainer.algorithm.off_policy_correction.tis_ratio_type=token"),
    ("rllm", "is_correction", True, "rllm.algorithm.rollout_correction.tis_mode=token"),
    ("nemo_rl", "dynamic_sampling", True, "grpo.use_dynamic_sampling=true"),
    ("roll", "grad_checkpoint", "true", "actor_train.model_args.disable_gradient_checkpointing=false"),
    ("ms_swift", "is_correction", True, "--rollout_importance_sampling_mode token_truncate"),
    ("open_instruct", "lr", 5e-7, "--learning_rate 5e-07"),
    ("tinker_cookbook", "temperature", 1.1, "temperature=1.1"),
    ("torchtune", "kl_coef", 0.03, "loss.kl_coeff=0.03"),
    ("trlx", "kl_coef", 0.15, """'{"method.init_kl_coef": 0.15}'"""),
    ("deepspeed_chat", "grad_checkpoint", "true", "--actor_gradient_checkpointing"),
    ("deepspeed_chat", "kl_coef", 0.3, "self.kl_ctl=0.3"),
    ("prime_rl", "lr", 5e-7, "trainer.optim.lr=5e-07"),
    ("areal", "kl_coef", 0.3, "actor.kl_ctl=0.3"),
]  # fmt: skip


@pytest.mark.parametrize(("trainer", "knob", "new", "line"), LINES)
def test_a_setting_is_printed_as_the_trainer_takes_it(
    trainer: str, knob: str, new: object, line: str
) -> None:
    table = tables()[trainer]
    rule = table.knob[knob]
    own = rule.values.get(str(new).lower(), new)
    assert command(rule.flag, own, rule.style or table.style) == line


@pytest.mark.parametrize("name", sorted(set(tables()) - {GENERIC, "lab"}))
def test_what_klinic_asks_for_in_words_every_trainer_spells_itself_or_is_left_out(
    name: str,
) -> None:
    """``dr_grpo`` and ``sequence`` are klinic's words: no trainer but TRL's family takes them."""
    answer = judge(of(name, "length_explosion"))
    actions = [a for a in (answer.first_action, *answer.then) if a is not None]
    for action in actions:
        if action.new in ("dr_grpo", "sequence"):
            assert tables()[name].knob[action.knob].values[action.new] == action.new
        if action.flag and tables()[name].style == "yaml":
            assert not action.flag.startswith("-") and ": " in (action.command or ": ")


@pytest.mark.parametrize("name", NO_BONUS)
def test_without_an_entropy_bonus_another_treatment_comes_first_and_the_advice_says_why(
    name: str,
) -> None:
    answer = judge(of(name, "entropy_collapse"))
    assert answer.main is not None and answer.main.failure == "entropy-collapse"
    asked = [a.knob for a in (answer.first_action, *answer.then) if a is not None]
    assert "entropy_coef" not in asked and asked
    said = [note.values for note in answer.notes if note.sentence == "note.no-knob"]
    assert any("entropy" in note["en"] and "熵" in note["zh"] for note in said)


def test_a_trainer_without_a_coefficient_gets_no_made_up_one() -> None:
    """LLaMA-Factory's ppo_target is a KL to aim at: raising it would loosen the hold."""
    answer = judge(of("llamafactory", "kl_runaway"))
    assert answer.first_action is not None and answer.first_action.knob == "lr"
    assert any("ppo_target" in note.values.get("en", "") for note in answer.notes)


@pytest.mark.parametrize(
    ("name", "monitor"),
    [
        ("verl", "kl_loss_coef=0.0"),
        ("slime", "--kl-loss-coef 0.00"),
        ("miles", "--kl-loss-coef 0.00"),
        ("skyrl", "kl_loss_coef=0"),
        ("roll", "kl_loss_coef=0"),
        ("openrlhf", "init_coef 1e-8"),  # 0 loads no reference
        ("areal", "1e-"),  # no reference engine at 0
        ("nemo_rl", "1e-"),  # the metric is 0 at 0
        ("trl", "--beta 0.00"),
        ("open_r1", "beta: 0.00"),
    ],
)
def test_kl_as_a_mere_monitor_asks_for_what_this_trainer_can(name: str, monitor: str) -> None:
    run = replace(of(name, "entropy_collapse"), curves={})
    assert monitor in how(how_to_log(run, "kl"), "en")


@pytest.mark.parametrize("name", sorted(set(tables()) - {GENERIC, "lab"}))
def test_every_setting_says_where_it_was_read(name: str) -> None:
    assert not [knob for knob, rule in tables()[name].knob.items() if not rule.source]


@pytest.mark.parametrize(
    "name",
    [
        "torchtune",
        "llamafactory",
        "deepspeed_chat",
        "trlx",
        "open_instruct",
        "tinker_cookbook",
        "slime",
        "skyrl",
        "rllm",
        "open_r1",
    ],
)
def test_every_metric_of_the_smaller_tables_says_where_it_was_read(name: str) -> None:
    table = tomllib.loads((TABLES / f"{name}.toml").read_text(encoding="utf-8"))
    assert not [metric["key"] for metric in table["metric"] if not metric.get("source")]


# What memory advice asks for and a trainer that samples on its own cards cannot be without.
MEMORY = ("max_prompt", "max_new_tokens", "micro_batch", "grad_checkpoint")


@pytest.mark.parametrize("name", sorted(set(tables()) - {GENERIC, "lab", "tinker_cookbook"}))
def test_memory_advice_finds_its_settings(name: str) -> None:
    table = tables()[name]
    missing = [knob for knob in MEMORY if knob not in table.knob]
    assert not set(missing) - {"max_prompt", "micro_batch", "grad_checkpoint"}, missing
    assert len(missing) <= (2 if name == "prime_rl" else 1), missing  # it packs rows of tokens
    assert (
        "rollout_memory" in table.knob or "rollout_memory" in table.without or name in OWN_SAMPLER
    )


OWN_SAMPLER = ("torchtune", "trlx", "deepspeed_chat", "llamafactory", "trl_ppo")


def test_flags_become_lines_of_yaml() -> None:
    assert (
        line_in("--log_completions True --beta 0.001", "yaml")
        == "log_completions: true, beta: 0.001"
    )
    assert line_in("--eval_strategy steps --log", "yaml") == "eval_strategy: steps, log: true"
    assert line_in("a.b=1", "yaml") == "a.b=1"
    assert flag_in("--beta", "yaml") == "beta" and flag_in("--beta", "cli") == "--beta"
