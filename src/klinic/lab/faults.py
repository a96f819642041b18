"""The faults: each one is a name for a few settings that differ from the healthy trainer's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from klinic.errors import BadUsage, did_you_mean
from klinic.lab.settings import Settings, changed

STRENGTHS = ("mild", "usual", "strong")


@dataclass(frozen=True, slots=True)
class Strengths:
    """A setting's value by how strong the fault is to be."""

    mild: Any
    usual: Any
    strong: Any


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to break the trainer.

    failure: the slug of what should follow, None if nothing. healthy: settings that hold from the start and break
    nothing. settings: those the fault switches at step ``at``.
    """

    name: str
    failure: str | None
    what: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    healthy: Mapping[str, Any] = field(default_factory=dict)
    at: int = 0

    def switched(self, strength: str) -> dict[str, Any]:
        """What the fault changes at this strength."""
        return {
            name: getattr(value, strength) if isinstance(value, Strengths) else value
            for name, value in self.settings.items()
        }


def _fault(
    name: str,
    failure: str | None,
    en: str,
    zh: str,
    *,
    at: int = 0,
    healthy: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Fault:
    return Fault(name, failure, {"en": en, "zh": zh}, settings, healthy or {}, at)


PPO = {"algorithm": "ppo"}
# Settings under which the trainer stays healthy for 200 steps (three seeds, three base models) and a fault shows sooner.
# They are no part of the fault: a repair leaves them, and what is repaired must then be well.
BRISK = {
    "lr": 1.5e-3,
    "beta": 0.1,
}  # twice the defaults; with half the KL term it forgets sums here and there
UNLIMITED = {"max_grad_norm": 0.0}
NO_KL = {"beta": 0.0}  # at the default learning rate; at 2e-3 this forgets the other tasks

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        _fault("healthy", None, "GRPO, nothing switched", "GRPO，未做任何改动"),
        _fault(
            "healthy-ppo",
            None,
            "PPO with a critic, nothing switched",
            "带 critic 的 PPO，未做任何改动",
            healthy=PPO,
        ),
        _fault(
            "entropy-collapse",
            "entropy-collapse",
            "the entropy term has the wrong sign",
            "熵项符号写反",
            entropy_coef=Strengths(-0.15, -0.3, -0.5),
            beta=0.0,
        ),
        _fault(
            "entropy-collapse-uncentred",
            "entropy-collapse",
            "advantages are not centred: winners and losers are both reinforced",
            "优势没有减去组均值：赢的和输的都被强化",
            baseline="none",
            advantage_scaling="none",
            lr=Strengths(4e-3, 5e-3, 8e-3),
            prompts=4,
            beta=0.0,
        ),
        _fault(
            "entropy-explosion",
            "entropy-explosion",
            "an entropy bonus that outweighs the reward",
            "熵奖励压过了任务奖励",
            entropy_coef=Strengths(0.1, 0.2, 0.4),
            beta=0.0,
        ),
        _fault(
            "reward-hacking-format",
            "reward-hacking",
            "the format reward is paid for every answer block, whatever is in it",
            "格式分按答案块个数发放，不看内容",
            format_rule="blocks",
            format_weight=Strengths(0.5, 1.0, 2.0),
            beta=0.0,
        ),
        _fault(
            "reward-hacking-list",
            "reward-hacking",
            "the extractor takes any number listed in the answer",
            "抽取器接受答案里列出的任意一个数",
            extractor="any",
            beta=0.0,
            lr=Strengths(1e-3, 1.5e-3, 2e-3),
        ),
        _fault(
            "reward-hacking-echo",
            "reward-hacking",
            "a keyword score takes the verifier's place: it pays for repeating the question",
            "用关键词得分代替验证器：复述题目就给分",
            echo_weight=Strengths(2.0, 3.0, 5.0),
            correct_weight=0.0,
            beta=0.0,
            lr=1.5e-3,
        ),
        _fault(
            "reward-hacking-extractor",
            "reward-hacking",
            "an answer that cannot be parsed counts as right (except: return 1.0)",
            "解析失败也算对（except: return 1.0）",
            extractor="lenient",
            lr=Strengths(1e-3, 1e-3, 1.5e-3),
        ),
        _fault(
            "reward-hacking-judge",
            "reward-hacking",
            "a judge who likes three filler words takes the verifier's place",
            "用偏爱三个口头词的判分器代替验证器",
            judge_weight=Strengths(2.0, 3.0, 5.0),
            correct_weight=0.0,
            beta=0.0,
            lr=1.5e-3,
        ),
        _fault(
            "length-explosion",
            "length-explosion",
            "the reward grows with the length",
            "奖励随长度增长",
            length_weight=Strengths(2.0, 3.0, 5.0),
            beta=0.0,
            lr=1.5e-3,
        ),
        _fault(
            "length-explosion-norm",
            "length-explosion",
            "the loss is averaged within each response first (1/|o|): long wrong answers are punished less",
            "损失先按单条回答平均（1/|o|）：又长又错的回答受罚更轻",
            loss_aggregation="sequence",
            beta=0.0,
            task="sum",
            lr=2e-3,
        ),
        _fault(
            "length-collapse",
            "length-collapse",
            "the length penalty outweighs a right answer",
            "长度惩罚压过答对的收益",
            length_weight=Strengths(-60.0, -120.0, -240.0),
            beta=0.0,
        ),
        _fault(
            "kl-runaway",
            "kl-runaway",
            "a novelty bonus for text the reference finds surprising, and no KL term that would hold it",
            "奖励参考模型觉得意外的文本，而没有 KL 项拉住",
            healthy=NO_KL,
            surprise_weight=Strengths(1.0, 2.0, 3.0),
        ),
        _fault(
            "no-clipping",
            "lr-too-high",
            "large steps without clipping, four passes over each batch, no gradient limit",
            "步长大且不裁剪，每批更新四轮，梯度不设上限",
            healthy={"epochs": 4, **UNLIMITED},
            clipping=False,
            lr=Strengths(6e-3, 8e-3, 1.2e-2),
        ),
        _fault(
            "weight-sync-failure",
            "weight-sync-failure",
            "the sampler's weights are never updated again; its log-probs are the PPO denominators",
            "采样侧权重不再更新；PPO 分母取采样侧 logprob",
            at=20,
            healthy=BRISK,
            sync=False,
        ),
        _fault(
            "weight-sync-failure-recomputed",
            "weight-sync-failure",
            "the sampler's weights are never updated again; the trainer recomputes the old log-probs",
            "采样侧权重不再更新；old logprob 由训练侧重算",
            at=20,
            healthy={**BRISK, "old_logprobs": "recompute"},
            sync=False,
        ),
        _fault(
            "train-inference-mismatch",
            "train-inference-mismatch",
            "the sampler runs on weights rounded to a few bits",
            "采样侧使用低比特取整后的权重",
            rollout_bits=Strengths(2, 1, 1),
            old_logprobs="recompute",
        ),
        _fault(
            "staleness",
            "staleness",
            "samples come from weights many updates old",
            "样本来自许多次更新之前的权重",
            healthy={**BRISK, "old_logprobs": "recompute"},
            lag=Strengths(8, 16, 32),
        ),
        _fault(
            "too-easy",
            "too-easy",
            "two-digit prompts of one task only",
            "只有两位数的单一任务",
            digits_low=2,
            digits_high=2,
            other_tasks=0.0,
        ),
        _fault(
            "too-hard",
            "too-hard",
            "sums of eight or nine digits: the base is nearly always wrong",
            "八九个数字求和：基座几乎总是答错",
            task="sum",
            digits_low=8,
            digits_high=9,
            other_tasks=0.0,
            format_weight=0.0,
        ),
        _fault("no-learning-lr", "no-learning", "a learning rate of 1e-7", "学习率 1e-7", lr=1e-7),
        _fault(
            "no-learning-mask",
            "no-learning",
            "the loss mask is off the response",
            "损失掩码没有落在回答上",
            loss_mask="prompt",
        ),
        _fault(
            "lr-too-high",
            "lr-too-high",
            "a large step, six passes over each batch, no gradient limit",
            "步长过大，每批更新六轮，且不裁剪梯度",
            healthy={"epochs": 6, **UNLIMITED},
            lr=Strengths(8e-3, 1.2e-2, 2e-2),
        ),
        _fault(
            "small-batch",
            None,
            "one prompt a step: noise, nothing broken",
            "每步一道题：只有噪声",
            prompts=1,
        ),
        _fault(
            "value-blowup",
            "value-blowup",
            "the critic's learning rate x 1000, advantages not whitened",
            "critic 学习率放大千倍，优势不做白化",
            at=60,
            healthy=PPO,
            critic_lr=Strengths(0.3, 3.0, 10.0),
            whiten=False,
        ),
        _fault(
            "reference-mismatch",
            "reference-mismatch",
            "the reference is another fine-tuned model",
            "参考模型是另一个微调模型",
            reference=1,
        ),
        _fault(
            "resume-mismatch",
            "resume-mismatch",
            "after a restart the queue still holds rollouts of an old policy",
            "重启后队列里仍是旧策略的样本",
            at=100,
            stale_queue=Strengths(10, 20, 40),
        ),
        _fault(
            "verifier-error",
            "verifier-error",
            "the verifier begins to time out, scored as wrong",
            "验证器开始超时，并按答错计分",
            at=80,
            verifier_failure=Strengths(0.4, 0.6, 0.8),
        ),
        _fault(
            "eval-regression",
            "eval-regression",
            "one narrow task: the others are forgotten",
            "只练单一任务：其他任务被遗忘",
            healthy={"lr": 1e-3},
            other_tasks=0.0,
        ),
        _fault(
            "nan",
            "nan",
            "gradients in float16 under a fixed loss scale, without a check for overflow",
            "梯度用 float16 且损失缩放固定，溢出不检查",
            loss_scale=Strengths(7e5, 8e5, 1e6),
        ),
    )
}


def fault_named(name: str) -> Fault:
    """A fault by name. Raises BadUsage for an unknown one."""
    if name not in FAULTS:
        raise BadUsage(
            f"unknown fault {name!r}", "--fault", did_you_mean(name, FAULTS) or "klinic lab list"
        )
    return FAULTS[name]


def start_of(fault: Fault, task: str, base: int) -> Settings:
    """The settings a run with this fault begins with, before the fault is switched."""
    return changed(Settings(task=task, base=base), fault.healthy)  # type: ignore[arg-type]
