"""Write a small log of each trainer's own layout under tests/runs/<trainer>/ (numbers invented, the same in all).

Layouts follow the print statements that each trainer's table names. Run: python tests/runs/make_trainer_logs.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from pprint import pformat

HERE = Path(__file__).parent
STEPS = 12


def numbers(i: int) -> dict[str, float]:
    """What every log holds at its i-th step."""
    return {
        "reward": round(0.3 + 0.01 * i + 0.003 * (i * 7 % 5), 6),
        "acc": round(0.2 + 0.01 * i + 0.003 * (i * 5 % 4), 6),
        "entropy": round(1.8 - 0.02 * i + 0.004 * (i * 3 % 5), 6),
        "kl": round(0.001 * (i + 1), 6),
        "len": 180.0 + 2 * i + i * 7 % 6,
        "trunc": round(0.01 + 0.001 * (i % 3), 6),
        "clip": round(0.004 + 0.0005 * (i % 4), 6),
        "grad": round(0.3 + 0.01 * (i * 7 % 6), 6),
        "mismatch": round(0.004 + 0.0001 * (i * 5 % 7), 6),
    }


def slime() -> dict[str, str]:
    """Two updates a rollout, so that the two axes differ; Ray prefixes; a repeated line; NaN."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        clock = f"[2026-11-30 10:{i:02d}:05]"
        perf = {
            "rollout/response_len/mean": n["len"],
            "rollout/truncated_ratio": n["trunc"],
            "rollout/zero_std/count_1.0": 2,
            "perf/rollout_time": 20.5,
        }
        if i % 2:
            perf["rollout/zero_std/count_0.0"] = 1
        rollout = {
            "rollout/rewards": 1e-8,
            "rollout/raw_reward": n["reward"],
            "rollout/log_probs": -0.3,
            "rollout/ref_log_probs": round(-0.3 - n["kl"], 6),
        }
        rows.append(
            f"\x1b[36m(RolloutManager pid=11)\x1b[0m {clock} rollout_metrics.py:268 - perf {i}: {perf}"
        )
        rows.append(
            f"\x1b[36m(MegatronTrainRayActor pid=12)\x1b[0m {clock} train_metric_utils.py:139 - rollout {i}: {rollout}"
        )
        for k in range(2):
            update = {
                "train/entropy_loss": n["entropy"],
                "train/pg_clipfrac": n["clip"] * k * 2,
                "train/ppo_kl": 0.0,
                "train/train_rollout_logprob_abs_diff": n["mismatch"],
                "train/kl_loss": n["kl"],
                "train/grad_norm": n["grad"],
                "train/lr-pg_0": 1e-06,
                "train/step": 2 * i + k,
            }
            rows.append(
                f"\x1b[36m(MegatronTrainRayActor pid=12)\x1b[0m {clock} model.py:918 - step {2 * i + k}: {update}\x1b[32m [repeated 7x across cluster]\x1b[0m"
            )
    command = "python train.py --rollout-batch-size 16 --n-samples-per-prompt 8 --kl-loss-type k3 --use-kl-loss --kl-loss-coef 0.001"
    return {"train.log": "\n".join([command, *rows])}


def miles() -> dict[str, str]:
    """slime's lines with another prefix."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        perf = {
            "rollout/response_len/mean": n["len"],
            "rollout/truncated_ratio": n["trunc"],
            "rollout/weight_version/mean": float(i),
        }
        update = {
            "train/entropy_loss": n["entropy"],
            "train/pg_clipfrac": n["clip"],
            "train/ess_ratio": 0.99,
            "train/train_rollout_logprob_abs_diff": n["mismatch"],
            "train/grad_norm": n["grad"],
            "train/lr-pg_0": 1e-06,
            "train/step": i,
        }
        rows.append(
            f"[2026-11-30 10:{i:02d}:05.123 rollout_manager] metrics.py:89 - perf {i}: {perf}"
        )
        rows.append(
            f"[2026-11-30 10:{i:02d}:05.123 rollout_manager] train.py:12 - rollout {i}: {{'rollout/raw_reward': {n['reward']}}}"
        )
        rows.append(f"[2026-11-30 10:{i:02d}:09.456 actor_0] model.py:854 - step {i}: {update}")
    return {"train.log": "\n".join(rows)}


def openrlhf() -> dict[str, str]:
    """The step record, a bar's preview and an evaluation."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        row = {
            "policy_loss": -0.0004,
            "entropy_loss": n["entropy"],
            "reward": n["reward"],
            "score": n["acc"],
            "kl": n["kl"],
            "logprobs_diff": n["kl"] * 0.8,
            "group_reward_std": 0.45,
            "return": 2e-08,
            "ppo_clip_ratio": n["clip"],
            "ppo_kl": -0.0001,
            "vllm_kl": n["mismatch"],
            "response_length": n["len"],
            "truncated": n["trunc"],
            "actor_lr": 1e-06,
            "actor_grad_norm": n["grad"],
        }
        rows.append(
            "\x1b[36m(ActorModelRayActor pid=3)\x1b[0m Train epoch [1/1]: 100%|██████████| 16/16 [00:31<00:00, 1.95s/it, act_loss=-.0004, reward=9, gen_len=9, kl=9]"
        )
        rows.append(
            f"\x1b[36m(PPOTrainer pid=2)\x1b[0m INFO 11-30 10:{i:02d}:05 ppo_trainer.py:547] ✨ Global step {i + 1}: {row}"
        )
        if i % 4 == 3:
            rows.append(
                f"\x1b[36m(PPOTrainer pid=2)\x1b[0m INFO 11-30 10:{i:02d}:06 ppo_trainer.py:594] ✨ Evaluation completed in 0:01:02, global_step {i + 1}, eval_metrics: {{'eval_gsm8k_pass1': {n['acc']}}}"
            )
    return {"train.log": "\n".join(rows)}


def prime_rl() -> dict[str, str]:
    """Two processes, two logs, one run."""
    trainer, orchestrator, metrics = [], [], []
    for i in range(STEPS):
        n = numbers(i)
        at = f"\x1b[32m10:{i:02d}:20\x1b[0m \x1b[1mSUCCESS\x1b[0m Step {i + 1} |"
        trainer.append(
            f"{at}     31s | Loss -0.0012 | Entropy {n['entropy']:.4f} | Mismatch KL {n['mismatch']:.4f} | Grad. Norm {n['grad']:.4f} | LR 1.00e-06 | Throughput 41234 tokens/s | MFU 31.2% | Peak Mem. 61.3 GiB"
        )
        orchestrator.append(
            f"{at}   1m 2s | Reward {n['reward']:.4f} | Trainable 480/512 (93.8%) | Turns 1.0 | Branches 1.0 | Max Off-Policy 1 | Error 0.0% | Cancelled 0.0% | Truncation {n['trunc']:.1%}"
        )
        metrics.append(
            json.dumps(
                {
                    "step": i + 1,
                    "time": 1.0,
                    "train/agg/effective/num_output_tokens/mean": n["len"],
                    "off_policy/mean": 0.6,
                }
            )
        )
    return {
        "logs/latest/trainer.log": "\n".join(trainer),
        "logs/latest/orchestrator.log": "\n".join(orchestrator),
        "orchestrator/metrics.jsonl": "\n".join(metrics),
    }


def areal() -> dict[str, str]:
    """A banner with the step, then a boxed table of key and value, column by column."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        values = {
            "ppo_actor/task_reward/avg": n["reward"],
            "ppo_actor/seq_len/avg": n["len"] + 100,
            "ppo_actor/prompt_len/avg": 100.0,
            "ppo_actor/correct_n_seqs": n["acc"] * 512,
            "ppo_actor/n_seqs": 512.0,
            "ppo_actor/kl_rewards/avg": -0.01 * n["kl"],
            "ppo_actor/no_eos_ratios/avg": 0.002,
            "ppo_actor/update/entropy/avg": n["entropy"],
            "ppo_actor/update/importance_weight/avg": 1.0,
            "ppo_actor/update/approx_kl/avg": -n["mismatch"],
            "ppo_actor/update/clip_ratio/avg": n["clip"],
            "ppo_actor/update/grad_norm": n["grad"],
        }
        head = f"(AReaL) 20261130-10:{i:02d}:05.123 StatsLogger INFO:"
        rows += [
            f"{head} Epoch 1/10 Step {i + 1}/117 Train step {i + 1}/1170 done.",
            f"{head} Stats (1/1):",
            f"{head} ",
        ]
        keys = list(values)
        rows.append("╒" + "═" * 60 + "╕")
        for one, two in zip(keys[:6], keys[6:], strict=True):
            rows += [
                f"│ {one:<27} │ {values[one]: .4e} │ {two:<40} │ {values[two]: .4e} │",
                "├" + "─" * 60 + "┤",
            ]
        rows[-1] = "╘" + "═" * 60 + "╛"
    return {
        "main.log": "\n".join(
            ["actor.kl_ctl=0.01 actor.kl_estimator=k3 gconfig.n_samples=8", *rows]
        )
    }


def skyrl() -> dict[str, str]:
    """The console logger's printed dictionary, and what every logger leaves: a reward line and a status line."""
    rows, bare = [], []
    for i in range(STEPS):
        n = numbers(i)
        head = f"\x1b[36m(skyrl_entrypoint pid=7)\x1b[0m 2026-11-30 10:{i:02d}:05.123 | INFO     | "
        status = {
            "final_loss": -0.0003,
            "policy_entropy": n["entropy"],
            "response_length": 1024.0,
            "policy_lr": 1e-06,
            "loss_metrics/clip_ratio": n["clip"],
            "policy_kl": n["kl"],
            "minibatch_rollout_logprobs_abs_diff_mean": n["mismatch"],
            "grad_norm": n["grad"],
        }
        block = {
            **{f"policy/{key}": value for key, value in status.items()},
            "policy/rollout_train_logprobs_abs_diff_mean": n["mismatch"],
            "generate/avg_num_tokens": n["len"],
            "reward/avg_pass_at_5": n["acc"],
            "reward/avg_raw_reward": n["reward"],
        }
        printed = pformat(
            {**{key: f"{value:.4f}" for key, value in block.items()}, "trainer/global_step": i + 1}
        )
        line = [
            f"{head}skyrl.train.trainer:postprocess_generator_output:1116 - reward/avg_pass_at_5: {n['acc']}, reward/avg_raw_reward: {n['reward']}, reward/mean_positive_reward: {n['reward']}",
            f"{head}skyrl.train.trainer:train:497 - {status}",
        ]
        bare += line
        rows += [*line, f"{head}skyrl.train.utils.tracking:log:189 - Step {i + 1}: ", printed]
    return {"console/train.log": "\n".join(rows), "status/train.log": "\n".join(bare)}


def nemo_rl() -> dict[str, str]:
    """Bullets below a banner, in sections."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows += [
            f"========================= Step {i + 1}/{STEPS} =========================",
            "▶ Generating responses for batch of size 512...",
            "",
            "📊 Training Results:",
            "  • Loss: -0.0012",
            f"  • Generation KL Error: {n['mismatch']:.4f}",
            f"  • Avg Reward: {n['reward']:.4f}",
            f"  • Mean Generation Length: {n['len']:.4f}",
            "",
            "⏱️  Timing:",
            "  • Total step time: 62.29s",
            "  • generation: 23.10s (37.9%)",
        ]
        if i % 4 == 3:
            rows += [
                "",
                "📊 Validation Results:",
                f"    • Accuracy: {n['acc']:.4f}",
                "    • Average response length: 201.0 tokens",
                "    • Samples processed: 256",
            ]
    return {"driver.log": "\n".join(rows)}


def roll() -> dict[str, str]:
    """JSON after a prefix; steps from 0."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        head = f"[2026-11-30 10:{i:02d}:05] [rlvr_pipeline.py (838)] [INFO] [DRIVER 0 / 1][PID 4]"
        row = {
            "critic/entropy/mean": n["entropy"],
            "critic/correct/mean": n["acc"],
            "critic/score/mean": n["reward"],
            "critic/rewards/mean": 1e-08,
            "token/response_length/mean": n["len"],
            "token/total_response_length/clip": 512 * n["trunc"],
            "system/batch_size": 512,
            "actor_train/grad_norm": n["grad"],
            "actor/clipfrac": n["clip"],
            "actor/policykl": -n["mismatch"],
            "actor/kl_loss": n["kl"],
            "system/step": i,
        }
        rows += [
            f"{head} pipeline step {i} start...",
            f"{head} {json.dumps(row)}",
            f"{head} pipeline step {i} finished",
        ]
    return {"log_rank_DRIVER_0_1.log": "\n".join(rows)}


def trl_like(extra: Callable[[int], dict[str, float]]) -> list[dict[str, float]]:
    """Rows of the GRPO trainer that several projects build on."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            {
                "loss": 0.001,
                "grad_norm": n["grad"],
                "learning_rate": 1e-06,
                "reward": n["reward"],
                "reward_std": 0.4,
                "frac_reward_zero_std": 0.1,
                "kl": n["kl"],
                "completions/mean_length": n["len"],
                "completions/clipped_ratio": n["trunc"],
                "clip_ratio/region_mean": n["clip"],
                "epoch": 0.01 * i,
                **extra(i),
            }
        )
    return rows


def ms_swift() -> dict[str, str]:
    """logging.jsonl with the step as "5/100"."""
    rows = [
        {**row, "global_step/max_steps": f"{i + 1}/{STEPS}", "memory(GiB)": 12.3}
        for i, row in enumerate(
            trl_like(lambda i: {"entropy/mean": numbers(i)["entropy"], "train_speed(s/it)": 25.3})
        )
    ]
    return {"logging.jsonl": "\n".join(json.dumps(row) for row in rows)}


def unsloth() -> dict[str, str]:
    """A notebook: the banner in a stream, the table as HTML."""
    names = {
        "Training Loss": "loss",
        "reward": "reward",
        "reward_std": "reward_std",
        "completions / mean_length": "completions/mean_length",
        "completions / clipped_ratio": "completions/clipped_ratio",
        "kl": "kl",
    }
    body = "".join(
        "<tr>"
        + f"<td>{i + 1}</td>"
        + "".join(f"<td>{row[key]:.6f}</td>" for key in names.values())
        + "</tr>"
        for i, row in enumerate(trl_like(lambda i: {}))
    )
    table = (
        '<div><progress value="12" max="12"></progress><table border="1" class="dataframe"><thead><tr style="text-align: left;"><th>Step</th>'
        + "".join(f"<th>{name}</th>" for name in names)
        + f"</tr></thead><tbody>{body}</tbody></table><p>"
    )
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# GRPO"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "source": [
                "from trl import GRPOConfig\n",
                "args = GRPOConfig(learning_rate=5e-6, num_generations=8)",
            ],
            "outputs": [
                {
                    "output_type": "stream",
                    "name": "stdout",
                    "text": ["🦥 Unsloth Zoo will now patch everything to make training faster!\n"],
                }
            ],
        },
        {
            "cell_type": "code",
            "execution_count": 2,
            "metadata": {},
            "source": ["trainer.train()"],
            "outputs": [
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {
                        "text/plain": ["<IPython.core.display.HTML object>"],
                        "text/html": [table],
                    },
                }
            ],
        },
    ]
    return {
        "grpo.ipynb": json.dumps(
            {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False
        )
    }


def open_r1() -> dict[str, str]:
    """TRL's dictionaries below open-r1's own start-up line, of two ranks."""
    rows = trl_like(
        lambda i: {
            "rewards/accuracy_reward/mean": numbers(i)["acc"],
            "rewards/tag_count_reward/mean": 0.9,
        }
    )
    return {
        "train.log": "\n".join(
            [
                "2026-11-30 10:00:00 - INFO - __main__ - src/open_r1/grpo.py started",
                *(f"[rank0]: {row}" for row in rows),
            ]
        )
    }


def tinker_cookbook() -> dict[str, str]:
    """metrics.jsonl, steps from 0."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            {
                "step": i,
                "progress/batch": i,
                "optim/lr": 1e-05,
                "progress/done_frac": i / STEPS,
                "env/all/reward/total": n["reward"],
                "env/all/correct": n["acc"],
                "env/all/ac_tokens_per_turn": n["len"],
                "env/all/by_group/frac_mixed": 0.9,
                "env/all/by_group/frac_all_good": 0.06,
                "env/all/by_group/frac_all_bad": 0.04,
                "optim/kl_sample_train_v1": n["mismatch"],
                "optim/entropy": n["entropy"],
            }
        )
    return {"metrics.jsonl": "\n".join(json.dumps(row) for row in rows)}


def open_instruct() -> dict[str, str]:
    """A panel a step, grouped by the part before the slash."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        inner = [
            f"  objective  kl2_avg: {n['kl']:.4f}",
            f"  other      training_step: {i + 1} | scores: {n['reward'] * 10:.4f} | lr: 0.0000 | real_batch_size_ratio: 0.9000",
            f"  policy     entropy_avg: {n['entropy']:.4f} | clipfrac_avg: {n['clip']:.4f}",
            f"  val        ratio: 1.0000 | sequence_lengths: {n['len']:.4f} | stop_rate: {1 - n['trunc']:.4f}",
        ]
        rows += [
            "╭" + " Metrics ".center(78, "─") + "╮",
            *(f"│{line:<78}│" for line in inner),
            "╰" + "─" * 78 + "╯",
        ]
    return {"stdout.log": "\n".join(rows)}


def rllm() -> dict[str, str]:
    """verl's step line with rLLM's keys."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        pairs = {
            "reward/default/mean": n["reward"],
            "advantage/default/std": 0.95,
            "advantage/default/fraction_zero": 0.1,
            "batch/solve_all": 3,
            "batch/solve_none": 4,
            "actor/entropy": n["entropy"],
            "actor/grad_norm": n["grad"],
            "response_length/mean": n["len"],
            "actor/pg_clipfrac": n["clip"],
        }
        rows.append(
            f"(TaskRunner pid=22) step:{i + 1} - "
            + " - ".join(f"{key}:{value}" for key, value in pairs.items())
        )
    return {"train.log": "\n".join(rows)}


def llamafactory() -> dict[str, str]:
    """trainer_log.jsonl: few keys."""
    return {
        "trainer_log.jsonl": "\n".join(
            json.dumps(
                {
                    "current_steps": i + 1,
                    "total_steps": STEPS,
                    "loss": 0.1,
                    "reward": numbers(i)["reward"],
                    "lr": 1e-05,
                    "epoch": 0.1,
                    "percentage": 5.0,
                    "elapsed_time": "0:00:10",
                }
            )
            for i in range(STEPS)
        )
    }


def torchtune() -> dict[str, str]:
    """DiskLogger's lines."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            f"Step {i + 1} | rewards:{n['reward']} successes:{n['acc']} num_stop_tokens:20 loss:-0.1 policy_loss:-0.1 kl_loss:{n['kl']} clipfrac:{n['clip']} ratios:1.0 response_lengths:{n['len']} lr:1e-05 "
        )
    return {"log_1796000000.txt": "\n".join(rows)}


def deepspeed_chat() -> dict[str, str]:
    """Two lines a step; steps begin again in the second epoch."""
    rows = []
    for i in range(STEPS):
        rows += [
            f"Epoch: {i // 6} | Step: {i % 6} | PPO Epoch: 1 | Actor Loss: -0.02 | Critic Loss: 0.05 | Unsupervised Loss: 0.0",
            f"Average reward score: {numbers(i)['reward']} | EMA reward score: 0.2",
            "-" * 85,
        ]
    return {"training.log": "\n".join(rows)}


def trlx() -> dict[str, str]:
    """What the JSON export of its tracker holds."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            {
                "step": i + 1,
                "rollout_scores/mean": n["reward"],
                "policy/sqrt_kl": 0.5,
                "policy/kl_per_token": n["kl"] ** 0.5,
                "kl_ctl_value": 0.05,
                "losses/value_loss": 0.2,
                "policy/clipfrac": n["clip"],
                "ratio": 1.0,
            }
        )
    return {"history.jsonl": "\n".join(json.dumps(row) for row in rows)}


def trl_ppo() -> dict[str, str]:
    """Dictionaries whose numbers are quoted, without a step."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            str(
                {
                    "eps": 5,
                    "objective/kl": f"{n['kl'] * n['len']:.4g}",
                    "objective/entropy": "66.38",
                    "objective/non_score_reward": "-0.5",
                    "objective/rlhf_reward": "-0.2",
                    "objective/scores": f"{n['reward']}",
                    "policy/approxkl_avg": "0.01",
                    "policy/clipfrac_avg": f"{n['clip']}",
                    "loss/policy_avg": "-0.1",
                    "loss/value_avg": "0.3",
                    "policy/entropy_avg": f"{n['entropy']}",
                    "val/ratio": "1.001",
                    "val/ratio_var": "0.002",
                    "val/num_eos_tokens": 12,
                    "lr": "3e-06",
                    "episode": 32 * (i + 1),
                }
            )
        )
    return {"stdout.log": "\n".join(rows)}


def minimind() -> dict[str, str]:
    """A hand-written loop that prints names of several words between commas."""
    rows = []
    for i in range(STEPS):
        n = numbers(i)
        rows.append(
            f"Epoch: 1, Step: {i + 1}/{STEPS}, Actor Loss: -0.0001, Reward: {n['reward'] - 2:.4f}, KL_ref: {-n['kl']:.4f}, Avg Response Len: {n['len']:.2f}, Learning Rate: 3.0e-07"
        )
    return {"train.log": "\n".join(rows)}


MAKERS = (
    slime,
    miles,
    openrlhf,
    prime_rl,
    areal,
    skyrl,
    nemo_rl,
    roll,
    ms_swift,
    unsloth,
    open_r1,
    tinker_cookbook,
    open_instruct,
    rllm,
    llamafactory,
    torchtune,
    deepspeed_chat,
    trlx,
    trl_ppo,
    minimind,
)


def main() -> None:
    """Write them all."""
    for maker in MAKERS:
        for name, text in maker().items():
            place = HERE / maker.__name__ / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
