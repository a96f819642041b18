"""The eight vital curves and every other role a metric can play in a diagnosis.

A role is what a rule asks for ("kl"); a canonical name says how it was measured
("kl_ref/k3/token_mean/response_only"). ``names`` lists the canonical names that can play a role, best first,
``*`` standing for one part of a name. Two metrics of different definition are never merged: the first that the
run has plays the role, the others stay available under their own names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Role:
    """What a curve means. scale: how changes of it are measured, one of "log", "share", "level".

    log: a quotient matters (entropy, KL, length). share: a difference on 0..1 matters. level: only the curve's
    own noise gives a unit (reward). steady: it should not move at all.
    """

    name: str
    names: tuple[str, ...]
    unit: str
    scale: str
    title: dict[str, str]
    healthy: dict[str, str]
    abnormal: dict[str, str]
    floor: float = 0.0
    steady: bool = False
    coarse: bool = (
        False  # a share over few groups: its levels are means, since medians of 0 and 1 jump
    )


def _role(
    name: str,
    names: str,
    unit: str,
    scale: str,
    en: tuple[str, str, str],
    zh: tuple[str, str, str],
    floor: float = 0.0,
    steady: bool = False,
    coarse: bool = False,
) -> Role:
    title, healthy, abnormal = ({"en": a, "zh": b} for a, b in zip(en, zh, strict=True))
    return Role(
        name, tuple(names.split()), unit, scale, title, healthy, abnormal, floor, steady, coarse
    )


# Healthy shapes and what their loss means: seed 000 (table of the eight), seed 003 (reading table),
# corrected where science.md 1.1 settles a disagreement.
ROLES: dict[str, Role] = {
    role.name: role
    for role in (
        _role(
            "reward",
            "reward/seq_mean/raw reward/seq_mean/shaped reward/seq_mean/unknown",
            "score",
            "level",
            (
                "reward",
                "rises slowly, levels off late",
                "flat: nothing is learnt; a surge: perhaps it pays for something else",
            ),
            ("奖励", "缓升，后期趋平", "平：没学到；暴涨：可能在刷分"),
        ),
        _role(
            "acc",
            "acc/seq_mean acc/pass_at_* eval/acc eval/*/acc",
            "share",
            "share",
            (
                "acc (answer right)",
                "moves with the reward",
                "parts from the reward: reward hacking",
            ),
            ("acc（只看答案对错）", "与 reward 同向", "与 reward 背离：reward hacking"),
        ),
        _role(
            "entropy",
            "entropy/token_mean/response_only entropy/seq_mean_token_mean/response_only entropy/is_estimate/* entropy/unknown",
            "nats/token",
            "log",
            (
                "entropy",
                "falls slowly, stays away from 0",
                "towards 0: entropy collapse; rising: entropy explosion, or the policy runs away",
            ),
            ("熵", "缓降，远离 0", "趋近 0：熵崩塌；上升：熵爆炸，或策略跑飞"),
            floor=1e-3,
        ),
        _role(
            "kl",
            "kl_ref/k3/token_mean/* kl_ref/k3/seq_mean_token_mean/* kl_ref/k2/* kl_ref/k1/token_mean/* kl_ref/k1/seq_mean_token_mean/* "
            "kl_ref/*/seq_sum/* kl_ref/unknown",
            "nats/token",
            "log",
            (
                "KL to the reference",
                "rises slowly from 0",
                "surges: the policy runs away; below 0 with k3: a bug",
            ),
            ("对参考模型的 KL", "从 0 缓升", "陡增：跑飞；k3 出现负值：实现错误"),
            floor=1e-4,
        ),
        _role(
            "adv_std",
            "adv_std/group_normalised adv_std/from_zero_std adv_std/unknown",
            "1",
            "share",
            (
                "advantage std",
                "0.8 to 1.2, 0.5 late in a run",
                "towards 0: groups no longer differ (entropy says why)",
            ),
            ("优势标准差", "0.8 ~ 1.2，后期 0.5 以上", "趋近 0：组内没有差异（成因看 entropy）"),
        ),
        _role(
            "clip_frac",
            "clip_frac/token_mean/active clip_frac/token_mean/outside_band clip_frac/seq_mean_token_mean/* clip_frac/seq/* clip_frac/unknown",
            "share",
            "share",
            ("clip fraction", "a few percent", "above 20 %: the single step is too large"),
            ("裁剪比例", "几个百分点", "> 20%：单步太猛"),
        ),
        _role(
            "ratio_mean",
            "ratio_mean/train_over_rollout/* ratio_mean/new_over_old/* ratio_mean/unknown",
            "1",
            "share",
            (
                "importance ratio, mean",
                "1.0 all the time",
                "drifts off 1: the rollout weights are not synced; flat at 1 alone rules nothing out (the mean of a true ratio is 1 by identity)",
            ),
            (
                "重要性比率均值",
                "恒 ≈ 1.0",
                "单调偏离：权重没同步；仅凭恒为 1 什么也排除不了（真比率的期望恒等于 1）",
            ),
            steady=True,
        ),
        _role(
            "len",
            "len/response_mean len/total_mean len/unknown",
            "tokens",
            "log",
            (
                "response length",
                "steady, or moves with acc",
                "grows while acc does not: length explosion (look at truncation)",
            ),
            ("回答长度", "稳定，或与 acc 同向", "涨而 acc 不涨：长度爆炸（配合截断率看）"),
            floor=1.0,
        ),
        _role(
            "zero_std",
            "groups/zero_std_frac groups/from_adv_std",
            "share",
            "share",
            (
                "zero-variance groups",
                "below 0.35",
                "towards 1: no group differs any more, no gradient",
            ),
            ("零方差组占比", "低于 0.35", "趋近 1：没有组还有差异，没有梯度"),
            coarse=True,
        ),
        _role(
            "all_right",
            "groups/all_right_frac",
            "share",
            "share",
            ("groups all right", "rises slowly", "towards 1: the questions are too easy"),
            ("全对组占比", "缓升", "趋近 1：题目太易"),
            coarse=True,
        ),
        _role(
            "all_wrong",
            "groups/all_wrong_frac",
            "share",
            "share",
            ("groups all wrong", "falls slowly", "towards 1: the questions are too hard"),
            ("全错组占比", "缓降", "趋近 1：题目太难"),
            coarse=True,
        ),
        _role(
            "trunc",
            "trunc/frac_finish_length trunc/frac_at_max_len trunc/unknown",
            "share",
            "share",
            ("truncated responses", "below 0.10", "above 0.15: answers are cut off"),
            ("截断率", "低于 0.10", "超过 0.15：回答被截断"),
        ),
        _role(
            "adv_max",
            "adv_max/*",
            "1",
            "log",
            ("largest advantage", "steady", "shrinks: the groups differ less and less"),
            ("最大优势", "平稳", "缩小：组内差异越来越小"),
            floor=1e-4,
        ),
        _role(
            "grad_norm",
            "grad_norm/pre_clip grad_norm/unknown",
            "1",
            "log",
            (
                "gradient norm",
                "steady",
                "surges: the step or the scale is off; 0: no gradient arrives",
            ),
            ("梯度范数", "平稳", "陡增：步长或尺度不对；为 0：没有梯度到达"),
            floor=1e-6,
        ),
        _role(
            "ratio_geo",
            "ratio_geo/train_over_rollout ratio_geo/new_over_old ratio_geo/unknown",
            "1",
            "share",
            (
                "importance ratio, geometric mean",
                "1.0 all the time",
                "falls: the trainer drifts away from the sampler",
            ),
            ("重要性比率几何均值", "恒 ≈ 1.0", "下降：训练侧偏离采样侧"),
            steady=True,
        ),
        _role(
            "ratio_outside",
            "ratio_outside/*",
            "share",
            "share",
            ("tokens outside the clip band", "a few percent", "above 0.1: off-policy samples"),
            ("裁剪带外的 token 占比", "几个百分点", "超过 0.1：样本已离策"),
        ),
        _role(
            "ratio_std",
            "ratio_std/*",
            "1",
            "log",
            (
                "importance ratio, std",
                "small, above 0",
                "exactly 0 with several updates a batch: old and new log-probs are mixed up",
            ),
            ("重要性比率标准差", "小，但大于 0", "多次更新下恒为 0：新旧 logprob 混用"),
            floor=1e-9,
        ),
        _role(
            "mismatch",
            "kl_rollout/k3/* kl_rollout/abs/* kl_rollout/k1/* mismatch/abs_logp_diff/* mismatch/abs_prob_diff/*",
            "nats/token",
            "log",
            (
                "train against rollout",
                "small and flat",
                "grows: the rollout weights are not synced; large from step 0: the engines differ",
            ),
            ("训推偏差", "小而平", "增长：权重没同步；从第 0 步就大：引擎不一致"),
            floor=1e-4,
            steady=True,
        ),
        _role(
            "staleness",
            "staleness/versions_mean",
            "versions",
            "level",
            (
                "staleness",
                "constant and small",
                "grows with every step: the sync is broken; large: samples of an old policy",
            ),
            ("样本陈旧度", "恒定且小", "每步都增：同步断了；大：样本来自旧策略"),
        ),
        _role(
            "kl_k1",
            "kl_ref/k1/*",
            "nats/token",
            "level",
            (
                "KL to the reference, k1",
                "near k3",
                "clearly below 0: off-policy samples, or a wrong reference",
            ),
            ("对参考模型的 KL（k1）", "接近 k3", "明显为负：样本离策，或参考模型不对"),
        ),
        _role(
            "kl_old",
            "kl_old/*",
            "nats/token",
            "level",
            ("KL to the old policy", "near 0", "large: several too large updates on one batch"),
            ("对旧策略的 KL", "接近 0", "大：同一批上更新过猛"),
        ),
        _role(
            "value_loss",
            "value_loss/*",
            "1",
            "log",
            ("value loss", "falls, then steady", "explodes: the critic poisons the advantages"),
            ("价值损失", "下降后平稳", "爆炸：critic 污染优势"),
            floor=1e-6,
        ),
        _role(
            "explained_variance",
            "explained_var/*",
            "1",
            "share",
            (
                "explained variance",
                "rises towards 1",
                "below 0: the critic is worse than a constant",
            ),
            ("解释方差", "升向 1", "小于 0：critic 还不如常数"),
        ),
        _role(
            "verifier_error",
            "verifier/error_frac",
            "share",
            "share",
            (
                "verifier errors",
                "0",
                "above 0.05: failures of the verifier are scored as wrong answers",
            ),
            ("验证器异常率", "0", "超过 0.05：验证器异常被当作答错"),
        ),
        _role(
            "uniq",
            "samples/unique_frac",
            "share",
            "share",
            ("distinct samples", "near 1", "falls: the samples of a group are the same text"),
            ("样本不重复率", "接近 1", "下降：组内采样是同一段文字"),
        ),
        _role(
            "reward_std",
            "reward_std/batch reward_std/group",
            "score",
            "level",
            ("reward std", "steady", "0: every answer is paid the same"),
            ("奖励标准差", "平稳", "为 0：所有回答同分"),
        ),
        _role(
            "len_max",
            "len/response_max",
            "tokens",
            "log",
            ("longest response", "below the cap", "at the cap: answers are cut off"),
            ("最长回答", "低于上限", "顶到上限：回答被截断"),
            floor=1.0,
        ),
        _role(
            "len_min",
            "len/response_min",
            "tokens",
            "log",
            ("shortest response", "well below the cap", "at the cap: no answer ends by itself"),
            ("最短回答", "远低于上限", "顶到上限：没有回答自己结束"),
            floor=1.0,
        ),
        _role(
            "lr",
            "lr",
            "1",
            "log",
            ("learning rate", "as scheduled", "0: nothing is updated"),
            ("学习率", "按计划", "为 0：没有更新"),
            floor=1e-12,
        ),
        _role(
            "loss",
            "policy_loss/* loss/total",
            "1",
            "level",
            (
                "loss",
                "near 0 by construction",
                "no progress signal in policy-gradient training; NaN: stop",
            ),
            ("损失", "按构造接近 0", "策略梯度里不是进度信号；NaN：停"),
        ),
    )
}

VITALS: tuple[str, ...] = (
    "reward",
    "acc",
    "entropy",
    "kl",
    "adv_std",
    "clip_frac",
    "ratio_mean",
    "len",
)

# What is drawn under its own name where a vital curve is not logged (DESIGN.md section 3).
STAND_INS: dict[str, tuple[str, ...]] = {
    "acc": (),
    "adv_std": ("zero_std",),
    "ratio_mean": ("mismatch", "ratio_geo"),
    "kl": ("kl_k1",),
}


def fits(pattern: str, name: str) -> bool:
    """Whether ``name`` has the form of ``pattern``, in which ``*`` stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first) or not name.endswith(rest[-1]):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at <= len(name) - len(rest[-1])


def role_of(canonical: str) -> str | None:
    """The role a canonical metric name can play, None if it plays none."""
    for role in ROLES.values():
        if any(fits(name, canonical) for name in role.names):
            return role.name
    return None


def players(role: str, available: Iterable[str]) -> list[str]:
    """Canonical names among ``available`` that can play ``role``, best first."""
    have = list(available)
    return [name for pattern in ROLES[role].names for name in have if fits(pattern, name)]
