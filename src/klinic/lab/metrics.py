"""What one step logs. Names are those of the minimal dashboard; trainers/lab.toml says what each number is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from klinic.lab.network import Array
from klinic.lab.rewards import Score

POSITIONS = 8  # parts of a response for entropy by position
EQUAL = 1e-6  # reward spread below which a group does not differ


def _quantiles(name: str, values: Array, at: dict[str, float]) -> dict[str, float]:
    found = np.quantile(values, list(at.values()))
    return {f"{name}_{label}": float(q) for label, q in zip(at, found, strict=True)}


def _correlation(a: Array, b: Array) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 1e-9 and b.std() > 1e-9 else 0.0


def of_rewards(
    scores: Sequence[Score], rewards: Array, lengths: Array, group: int
) -> dict[str, Any]:
    """Reward, its parts and its spread within groups; accuracy by the strict verifier. rewards (B,)."""
    right = np.array([s.right for s in scores])
    by_group = rewards.reshape(-1, group)
    spread = by_group.std(1)
    right_by_group = right.reshape(-1, group).mean(1)
    return {
        "reward": float(rewards.mean()),
        "acc": float(right.mean()),
        **{
            f"reward_{part}": float(np.mean([s.parts[part] for s in scores]))
            for part in scores[0].parts
        },
        "reward_std": float(rewards.std()),
        **_quantiles("reward", rewards, {"p10": 0.1, "p50": 0.5, "p90": 0.9}),
        "reward_min": float(rewards.min()),
        "reward_max": float(rewards.max()),
        "frac_zero_std": float((spread < EQUAL).mean()),
        "frac_all_right": float((right_by_group == 1).mean()),
        "frac_all_wrong": float((right_by_group == 0).mean()),
        "adv_std": float(
            ((by_group - by_group.mean(1, keepdims=True)) / (spread[:, None] + 1e-4)).std()
        ),
        "verifier_err": float(np.mean([s.verifier_error for s in scores])),
        "fmt": float(np.mean([s.well_formed for s in scores])),
        "corr_reward_len": _correlation(rewards, lengths),
        "corr_acc_len": _correlation(right, lengths),
        "len_right": float(lengths[right > 0].mean()) if right.any() else None,
        "len_wrong": float(lengths[right == 0].mean()) if not right.all() else None,
    }


def of_samples(
    tokens: Array, mask: Array, ended: Array, entropy: Array, group: int
) -> dict[str, Any]:
    """Lengths, truncation, uniqueness and the sampler's entropy. All (B, T), ended (B,)."""
    lengths = mask.sum(1)
    part = np.minimum(
        (np.cumsum(mask, 1) - 1) * POSITIONS // np.maximum(lengths[:, None], 1), POSITIONS - 1
    )
    rows = [tuple(row[kept]) for row, kept in zip(tokens, mask, strict=True)]
    groups = [rows[i : i + group] for i in range(0, len(rows), group)]
    return {
        "entropy": float(entropy[mask].mean()),
        "entropy_by_position": [
            round(float(entropy[mask & (part == p)].mean()), 4)
            if (mask & (part == p)).any()
            else None
            for p in range(POSITIONS)
        ],
        "len": float(lengths.mean()),
        **_quantiles("len", lengths, {"p10": 0.1, "p50": 0.5, "p90": 0.9}),
        "len_max": int(lengths.max()),
        "trunc": float((~ended).mean()),
        "eos_rate": float(ended.mean()),
        "uniq": float(np.mean([len(set(g)) / group for g in groups])),
    }


def of_policies(now: Array, sampler: Array, reference: Array, mask: Array) -> dict[str, Any]:
    """How far the policy before the update is from its sampler and from the reference; log-probs and mask (B, T)."""
    d = np.clip(reference - now, -20, 20)
    k3 = np.exp(d) - d - 1
    gap = (now - sampler)[mask]
    return {
        "kl": float(k3[mask].mean()),
        "kl_k1": float(-d[mask].mean()),
        "kl_seq": float((k3 * mask).sum(1).mean()),
        "mismatch_abs": float(np.abs(gap).mean()),
        "mismatch_k1": float(-gap.mean()),
        "mismatch_max": float(np.abs(gap).max()),
    }


def of_updates(updates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Ratios, clipping, gradients and losses over the step's updates.

    ratio_* compare the updated policy with the tokens' true sampler, ratio_trainer with the loss's denominators.
    """
    ratio = np.concatenate([u["ratio"] for u in updates])
    return {
        "ratio_mean": float(ratio.mean()),
        "ratio_geo": float(np.exp(np.log(ratio).mean())),
        **_quantiles(
            "ratio", ratio, {"p01": 0.01, "p10": 0.1, "p50": 0.5, "p90": 0.9, "p99": 0.99}
        ),
        "ratio_min": float(ratio.min()),
        "ratio_max": float(ratio.max()),
        **{
            name: float(np.mean([u[name] for u in updates]))
            for name in ("ratio_outside", "ratio_trainer", "clip_frac", "clip_frac_trainer", "loss")
        },
        "grad_norm": float(np.mean([u["grad_norm"] for u in updates])),
        "grad_norm_max": float(np.max([u["grad_norm"] for u in updates])),
    }


def of_critic(
    values: Array, returns: Array, mask: Array, losses: Sequence[float]
) -> dict[str, Any]:
    """The critic's loss and how much of the returns it explains. values, returns, mask (B, T)."""
    v, r = values[mask], returns[mask]
    return {
        "value_loss": float(np.mean(losses)),
        "explained_var": float(1 - (r - v).var() / (r.var() + 1e-12)),
        "returns_mean": float(r.mean()),
        "returns_std": float(r.std()),
        "values_mean": float(v.mean()),
    }
