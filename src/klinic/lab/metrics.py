"""What one step logs. Names are those of the minimal dashboard; trainers/lab.toml says what each number is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from klinic import instrument
from klinic.lab.network import Array
from klinic.lab.rewards import Score


def _quantiles(name: str, values: Array, at: dict[str, float]) -> dict[str, float]:
    found = instrument.masked_quantiles(values, _all(values), list(at.values()))
    return {f"{name}_{label}": q for label, q in zip(at, found, strict=True)}


def _correlation(a: Array, b: Array) -> float:
    found = float(instrument.correlation(a, b, _all(a)))
    return 0.0 if math.isnan(found) else found


def _all(values: Array) -> Array:
    return np.ones_like(values, bool)


def _number(value: Array) -> float | None:
    """A number for the log; what there is none of is left out of it."""
    return None if math.isnan(value) else float(value)


def of_rewards(
    scores: Sequence[Score], rewards: Array, lengths: Array, group: int
) -> dict[str, Any]:
    """Reward, its parts and its spread within groups; accuracy by the strict verifier. rewards (B,)."""
    right = np.array([s.right for s in scores])
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
        "frac_zero_std": float(instrument.zero_std_share(rewards, group)),
        "frac_all_right": float(instrument.all_right_share(right, group)),
        "frac_all_wrong": float(instrument.all_wrong_share(right, group)),
        "adv_std": float(instrument.group_advantages(rewards, group).std()),
        "verifier_err": float(np.mean([s.verifier_error for s in scores])),
        "fmt": float(np.mean([s.well_formed for s in scores])),
        "corr_reward_len": _correlation(rewards, lengths),
        "corr_acc_len": _correlation(right, lengths),
        "len_right": _number(instrument.masked_mean(lengths, right)),
        "len_wrong": _number(instrument.masked_mean(lengths, right == 0)),
    }


def of_samples(
    tokens: Array, mask: Array, ended: Array, entropy: Array, group: int
) -> dict[str, Any]:
    """Lengths, truncation, uniqueness and the sampler's entropy. All (B, T), ended (B,)."""
    lengths = instrument.lengths(mask)
    parts = [_number(part) for part in instrument.by_relative_position(entropy, mask)]
    return {
        "entropy": float(instrument.masked_mean(entropy, mask)),
        "entropy_by_position": [part if part is None else round(part, 4) for part in parts],
        "len": float(lengths.mean()),
        **_quantiles("len", lengths, {"p10": 0.1, "p50": 0.5, "p90": 0.9}),
        "len_max": int(lengths.max()),
        "trunc": float((~ended).mean()),
        "eos_rate": float(ended.mean()),
        "uniq": instrument.unique_share(tokens, mask, group),
    }


def of_policies(now: Array, sampler: Array, reference: Array, mask: Array) -> dict[str, Any]:
    """How far the policy before the update is from its sampler and from the reference; log-probs and mask (B, T)."""
    return {
        "kl": float(instrument.kl_token_mean(now, reference, mask, "k3")),
        "kl_k1": float(instrument.kl_token_mean(now, reference, mask, "k1")),
        "kl_seq": float(instrument.kl_seq_sum(now, reference, mask, "k3")),
        "mismatch_abs": float(instrument.kl_token_mean(sampler, now, mask, "abs")),
        "mismatch_k1": float(instrument.kl_token_mean(sampler, now, mask, "k1")),
        "mismatch_max": float(np.abs((now - sampler)[mask]).max()),
    }


def of_updates(updates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Ratios, clipping, gradients and losses over the step's updates.

    ratio_* compare the updated policy with the tokens' true sampler, ratio_trainer with the loss's denominators.
    """
    new, old = (np.concatenate([u[name] for u in updates]) for name in ("logp", "sampler"))
    every = _all(new)
    ratio = instrument.ratio(new, old, every)
    return {
        "ratio_mean": float(instrument.ratio_mean(new, old, every)),
        "ratio_geo": float(instrument.ratio_geo_mean(new, old, every)),
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
        "explained_var": float(instrument.explained_variance(values, returns, mask))
        if r.std() > 0
        else None,
        "returns_mean": float(r.mean()),
        "returns_std": float(r.std()),
        "values_mean": float(v.mean()),
    }
