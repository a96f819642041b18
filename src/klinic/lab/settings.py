"""Every setting of the lab's trainer. The defaults are the healthy trainer; a fault is other values for a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from klinic.errors import BadUsage, did_you_mean


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run's settings. What each fault changes is listed in ``faults``."""

    # What is learnt
    task: Literal["max", "min", "odd", "sum"] = "max"
    base: int = 0
    digits_low: int = 3
    digits_high: int = 5
    # Share of prompts from the tasks beside the main one, drawn as often as the warm-up showed them. At a third, and drawn
    # evenly, healthy runs forgot half of what the base could do of ``sum``.
    other_tasks: float = 0.5
    # Sampling
    prompts: int = 8
    group: int = 8
    max_new_tokens: int = 64
    temperature: float = 1.0
    # The update
    algorithm: Literal["grpo", "ppo"] = "grpo"
    lr: float = 7e-4
    lr_warmup: int = 8
    epochs: int = 1
    minibatches: int = 2
    clip_low: float = 0.2
    clip_high: float = 0.2
    clipping: bool = True
    beta: float = 0.05
    entropy_coef: float = 0.0
    # Coefficients that follow a target (klinic.instrument.control); beta and entropy_coef are where they begin.
    kl_control: Literal["fixed", "exponential", "proportional"] = "fixed"
    kl_target: float = 0.05  # of the logged kl, nats per token
    kl_rate: float = 0.1  # eta of the exponential form, n_steps / horizon of the proportional one
    beta_low: float = 1e-3
    beta_high: float = 3.0
    entropy_target: float = 0.0  # of the logged entropy, nats per token; 0: entropy_coef is fixed
    entropy_rate: float = 2e-3  # the most entropy_coef drifts in a step
    entropy_damping: float = 50.0  # how many steps' drift an error counts at once
    entropy_coef_low: float = 0.0
    entropy_coef_high: float = 0.1
    max_grad_norm: float = 1.0  # 0: no limit
    loss_aggregation: Literal["token", "sequence", "constant"] = "token"
    advantage_scaling: Literal["group", "none"] = "group"
    baseline: Literal["mean", "none"] = "mean"
    critic_lr: float = 3e-3
    gae_lambda: float = 0.95
    whiten: bool = True
    # The reward
    correct_weight: float = 1.0
    format_weight: float = 0.2
    format_rule: Literal["whole", "blocks"] = "whole"  # blocks: paid for every answer block
    length_weight: float = 0.0  # paid for the share of max_new_tokens that is used
    judge_weight: float = 0.0  # paid by a judge who likes certain words
    echo_weight: float = 0.0  # paid for repeating the question's digits
    surprise_weight: float = 0.0  # paid for text that the reference finds surprising
    extractor: Literal["strict", "any", "last", "lenient"] = "strict"
    reward_scale: float = 1.0
    # The machinery
    old_logprobs: Literal["rollout", "recompute"] = "rollout"
    sync: bool = True
    rollout_bits: int = 0  # mantissa bits of the sampler's weights, 0: as the trainer's
    lag: int = 0  # updates by which the sampler's weights are behind
    loss_mask: Literal["response", "prompt"] = "response"
    reference: int = -1  # the base model that serves as reference, -1: the own one
    stale_queue: int = 0  # rollouts of the base policy that a resume finds in its queue
    verifier_failure: float = 0.0  # share of answers at which the verifier raises (scored 0)
    loss_scale: float = (
        0.0  # gradients pass through float16 with this fixed scale; 0: they stay float32
    )
    # What is kept
    eval_every: int = 10
    eval_prompts: int = 96


# A repair puts a whole group back to the healthy trainer: what "fix the reward" means, whatever the hole was.
REWARD = (
    "correct_weight",
    "format_weight",
    "format_rule",
    "length_weight",
    "judge_weight",
    "echo_weight",
    "surprise_weight",
    "extractor",
    "reward_scale",
)
CODE = (
    "old_logprobs",
    "sync",
    "rollout_bits",
    "lag",
    "loss_mask",
    "reference",
    "stale_queue",
    "verifier_failure",
    "loss_scale",
    "clipping",
    "baseline",
)
DATA = ("digits_low", "digits_high", "other_tasks")
GROUPS = {"reward": REWARD, "code": CODE, "data": DATA}
DEFAULTS: dict[str, Any] = msgspec.structs.asdict(Settings())


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with some values replaced; text is parsed. Raises BadUsage for an unknown name or value."""
    known = msgspec.structs.asdict(settings)
    for name in changes:
        if name not in known:
            raise BadUsage(
                f"unknown setting {name!r}",
                "--set",
                did_you_mean(name, known) or "klinic lab list --settings names them",
            )
    try:
        return msgspec.convert({**known, **changes}, Settings, strict=False)
    except msgspec.ValidationError as trouble:
        raise BadUsage(
            f"{trouble}", "--set", "klinic lab list --settings shows what each takes"
        ) from None


def repairs(groups: Iterable[str]) -> dict[str, Any]:
    """The healthy values of whole groups. Raises BadUsage for an unknown group."""
    found: dict[str, Any] = {}
    for group in groups:
        if group not in GROUPS:
            raise BadUsage(f"unknown group {group!r}", "--fix", f"known: {', '.join(GROUPS)}")
        found |= {name: DEFAULTS[name] for name in GROUPS[group]}
    return found


def parse_changes(pairs: Iterable[str]) -> dict[str, str]:
    """``("lr=0.002",)`` -> ``{"lr": "0.002"}``. Raises BadUsage where the ``=`` is missing."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name or not value:
            raise BadUsage(f"cannot understand {pair!r}", "--set", "write --set lr=0.002")
        found[name.strip()] = value.strip()
    return found
