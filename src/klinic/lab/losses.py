"""Every term of the losses with its gradient; each is checked against finite differences in the tests.

All arrays are (L, B) over response positions, logits (L, B, V). ``weights`` carries mask and normalisation: a loss is
the weighted sum over tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from klinic.instrument.entropy import entropy_of, log_softmax
from klinic.instrument.kl import LOG_RATIO_LIMIT, k3
from klinic.instrument.ratios import clipping
from klinic.instrument.ratios import ratio as importance_ratio
from klinic.lab.network import Array


def token_weights(mask: Array, aggregation: str, longest: int) -> Array:
    """How much each token counts. mask (L, B).

    token: all tokens alike; sequence: all responses alike (1/|o|); constant: by the length cap (Dr. GRPO).
    """
    batch = mask.shape[1]
    if aggregation == "token":
        result: Array = mask / mask.sum()
    elif aggregation == "sequence":
        result = mask / np.maximum(mask.sum(0, keepdims=True), 1) / batch
    else:
        result = mask / (batch * longest)
    return result


def clipped_surrogate(
    logp: Array, old: Array, advantage: Array, low: float, high: float
) -> tuple[Array, Array, Array, Array]:
    """PPO's clipped objective per token: loss, its derivative to logp, the ratio, and where the clipped branch binds.

    low, high: the ratio's band is 1 - low to 1 + high; infinite bounds clip nothing.
    """
    ratio = importance_ratio(logp, old, np.ones_like(logp, bool))
    bound = clipping(ratio, advantage, low, high).active
    loss = -np.minimum(ratio * advantage, np.clip(ratio, 1 - low, 1 + high) * advantage)
    return loss, np.where(bound, 0, -advantage * ratio), ratio, bound


def kl_k3(logp: Array, reference: Array) -> tuple[Array, Array]:
    """The k3 estimate of the KL divergence to the reference per token, and its derivative to logp."""
    d = np.clip(reference - logp, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return k3(logp, reference, np.ones_like(logp, bool)), 1 - np.exp(d)


def entropy(log_probs: Array) -> tuple[Array, Array]:
    """The entropy in nats, and its derivative to the logits. log_probs (..., V)."""
    probs = np.exp(log_probs)
    size = entropy_of(log_probs)
    return size, -probs * (log_probs + size[..., None])


def value_loss(values: Array, returns: Array, weights: Array) -> tuple[float, Array]:
    """Half the weighted squared error, and its derivative to the values."""
    error = values - returns
    return 0.5 * float((weights * error**2).sum()), weights * error


@dataclass(frozen=True, slots=True)
class Terms:
    """What a minibatch holds, all (L, B): sampled tokens, their old and reference log-probs, advantages, weights."""

    tokens: Array
    old: Array
    reference: Array
    advantage: Array
    weights: Array


@dataclass(frozen=True, slots=True)
class Knobs:
    """What the loss depends on beside the batch."""

    temperature: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.2
    beta: float = 0.0
    entropy_coef: float = 0.0


def policy_loss(logits: Array, terms: Terms, knobs: Knobs) -> tuple[float, Array, dict[str, Any]]:
    """Clipped surrogate + beta * k3 - entropy_coef * entropy: the loss, its gradient to the logits, ratio and clip."""
    log_probs = log_softmax(logits / knobs.temperature)
    chosen = terms.tokens[..., None]
    logp = np.take_along_axis(log_probs, chosen, -1)[..., 0]
    loss, d_logp, ratio, bound = clipped_surrogate(
        logp, terms.old, terms.advantage, knobs.clip_low, knobs.clip_high
    )
    if knobs.beta:
        kl, d_kl = kl_k3(logp, terms.reference)
        loss, d_logp = loss + knobs.beta * kl, d_logp + knobs.beta * d_kl
    # d logp / d logits is the one-hot of the chosen token minus the probabilities.
    pull = (d_logp * terms.weights)[..., None]
    d_logits = -np.exp(log_probs) * pull
    np.put_along_axis(d_logits, chosen, np.take_along_axis(d_logits, chosen, -1) + pull, -1)
    if knobs.entropy_coef:
        size, d_size = entropy(log_probs)
        loss = loss - knobs.entropy_coef * size
        d_logits = d_logits - knobs.entropy_coef * terms.weights[..., None] * d_size
    d_logits = (d_logits / knobs.temperature).astype(logits.dtype)
    return (
        float((loss * terms.weights).sum()),
        d_logits,
        {"ratio": ratio, "bound": bound, "logp": logp},
    )


def supervised_loss(logits: Array, tokens: Array, weights: Array) -> tuple[float, Array]:
    """Cross entropy and its gradient to the logits; for the warm-up."""
    log_probs = log_softmax(logits)
    chosen = tokens[..., None]
    loss = -float((np.take_along_axis(log_probs, chosen, -1)[..., 0] * weights).sum())
    d_logits = np.exp(log_probs)
    np.put_along_axis(d_logits, chosen, np.take_along_axis(d_logits, chosen, -1) - 1, -1)
    return loss, (d_logits * weights[..., None]).astype(logits.dtype)
