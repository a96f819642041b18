"""The policy: a one-layer GRU language model with its gradient written out, and the small critic on top.

Shapes: B sequences, L positions, H hidden units, V tokens. Weights are plain dictionaries of arrays, so that a
checkpoint is what it looks like. The number type is that of the weights: float32 in the lab, float64 where gradients
are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from klinic.instrument.entropy import entropy_of, log_softmax
from klinic.lab.words import EOS, PAD, SIZE, ZERO

Array = npt.NDArray[Any]
Weights = dict[str, Array]
CRITIC_UNITS = 64


def new_policy(rng: np.random.Generator, hidden: int) -> Weights:
    """Untrained weights."""
    width = 1 / np.sqrt(hidden)

    def uniform(*shape: int) -> Array:
        return rng.uniform(-width, width, shape).astype(np.float32)

    return {
        "input": rng.normal(0, 0.3, (SIZE, 3 * hidden)).astype(np.float32),
        "recurrent": uniform(hidden, 3 * hidden),
        "recurrent_bias": np.zeros(3 * hidden, np.float32),
        "output": uniform(hidden, SIZE),
        "output_bias": np.zeros(SIZE, np.float32),
    }


def new_critic(rng: np.random.Generator, hidden: int) -> Weights:
    """An untrained critic: one tanh layer on the policy's hidden state, which it does not change."""
    return {
        "inner": rng.normal(0, 1 / np.sqrt(hidden), (hidden, CRITIC_UNITS)).astype(np.float32),
        "inner_bias": np.zeros(CRITIC_UNITS, np.float32),
        "outer": rng.normal(0, 0.1 / np.sqrt(CRITIC_UNITS), (CRITIC_UNITS, 1)).astype(np.float32),
        "outer_bias": np.zeros(1, np.float32),
    }


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def cell(policy: Weights, state: Array, tokens: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """One step of the GRU. state (B, H), tokens (B,) -> the next state and what the gradient needs."""
    hidden = state.shape[1]
    x = policy["input"][tokens]
    g = state @ policy["recurrent"] + policy["recurrent_bias"]
    gates = _sigmoid(x[:, : 2 * hidden] + g[:, : 2 * hidden])
    reset, update = gates[:, :hidden], gates[:, hidden:]
    new = np.tanh(x[:, 2 * hidden :] + reset * g[:, 2 * hidden :])
    return new + update * (state - new), (gates, new, g[:, 2 * hidden :])


@dataclass(slots=True)
class Pass:
    """A forward pass: tokens (B, L), states (L + 1, B, H) with the zero state first, and the gates."""

    tokens: Array
    states: Array
    gates: list[tuple[Array, Array, Array]]


def forward(policy: Weights, tokens: Array) -> Pass:
    """The hidden state after every token. tokens (B, L)."""
    batch, length = tokens.shape
    hidden = policy["recurrent"].shape[0]
    states = np.zeros((length + 1, batch, hidden), policy["recurrent"].dtype)
    gates = []
    for t in range(length):
        states[t + 1], kept = cell(policy, states[t], tokens[:, t])
        gates.append(kept)
    return Pass(tokens, states, gates)


def logits_of(policy: Weights, states: Array) -> Array:
    """Next-token logits. states (..., H) -> (..., V)."""
    result: Array = states @ policy["output"] + policy["output_bias"]
    return result


def backward(policy: Weights, done: Pass, first: int, d_logits: Array) -> Weights:
    """The gradient of every weight.

    d_logits: (n, B, V), of the logits read off states first + 1 to first + n, that is after tokens first to
    first + n - 1.
    """
    length, (batch, hidden) = len(done.gates), done.states.shape[1:]
    count = len(d_logits)
    read = done.states[first + 1 : first + 1 + count]
    kind = policy["recurrent"].dtype
    d_states = np.zeros((length, batch, hidden), kind)
    d_states[first : first + count] = d_logits @ policy["output"].T
    d_input = np.empty((length, batch, 3 * hidden), kind)
    d_gates = np.empty((length, batch, 3 * hidden), kind)
    d = np.zeros((batch, hidden), kind)
    back = np.ascontiguousarray(policy["recurrent"].T)
    for t in range(length - 1, -1, -1):
        gates, new, g_new = done.gates[t]
        reset, update = gates[:, :hidden], gates[:, hidden:]
        d = d + d_states[t]
        d_new = d * (1 - update) * (1 - new * new)
        d_input[t, :, :hidden] = d_new * g_new * reset * (1 - reset)
        d_input[t, :, hidden : 2 * hidden] = d * (done.states[t] - new) * update * (1 - update)
        d_input[t, :, 2 * hidden :] = d_new
        d_gates[t, :, : 2 * hidden] = d_input[t, :, : 2 * hidden]
        d_gates[t, :, 2 * hidden :] = d_new * reset
        d = d * update + d_gates[t] @ back
    chosen = np.zeros((length * batch, SIZE), kind)
    chosen[np.arange(length * batch), done.tokens.T.reshape(-1)] = 1
    return {
        "input": chosen.T @ d_input.reshape(length * batch, -1),
        "recurrent": done.states[:-1].reshape(-1, hidden).T @ d_gates.reshape(length * batch, -1),
        "recurrent_bias": d_gates.sum((0, 1)),
        "output": read.reshape(-1, hidden).T @ d_logits.reshape(-1, SIZE),
        "output_bias": d_logits.sum((0, 1)),
    }


def value(critic: Weights, states: Array) -> Array:
    """The critic's estimate. states (..., H) -> (...)."""
    inner = np.tanh(states @ critic["inner"] + critic["inner_bias"])
    result: Array = (inner @ critic["outer"] + critic["outer_bias"])[..., 0]
    return result


def value_backward(critic: Weights, states: Array, d_value: Array) -> Weights:
    """The gradient of the critic's weights. states (..., H), d_value (...); the policy gets none."""
    hidden = states.shape[-1]
    flat, d = states.reshape(-1, hidden), d_value.reshape(-1, 1)
    inner = np.tanh(flat @ critic["inner"] + critic["inner_bias"])
    d_inner = (d @ critic["outer"].T) * (1 - inner * inner)
    return {
        "inner": flat.T @ d_inner,
        "inner_bias": d_inner.sum(0),
        "outer": inner.T @ d,
        "outer_bias": d.sum(0),
    }


@dataclass(frozen=True, slots=True)
class Samples:
    """Sampled responses: tokens, log-probs of the sampler, entropies of the untempered policy and mask, all (B, T)."""

    tokens: Array
    logp: Array
    entropy: Array
    mask: Array


def sample(
    policy: Weights,
    prompts: Array,
    rng: np.random.Generator,
    longest: int,
    temperature: float = 1.0,
    greedy: bool = False,
) -> Samples:
    """Write a response to every prompt, up to ``longest`` tokens. prompts (B, P)."""
    batch, hidden = len(prompts), policy["recurrent"].shape[0]
    state = np.zeros((batch, hidden), policy["recurrent"].dtype)
    for t in range(prompts.shape[1]):
        state, _ = cell(policy, state, prompts[:, t])
    tokens = np.full((batch, longest), PAD, np.int64)
    logp, entropy = np.zeros((2, batch, longest), np.float32)
    mask = np.zeros((batch, longest), bool)
    alive = np.ones(batch, bool)
    rows = np.arange(batch)
    for t in range(longest):
        logits = logits_of(policy, state)
        plain = log_softmax(logits)
        tempered = plain if temperature == 1 else log_softmax(logits / temperature)
        if greedy:
            choice = logits.argmax(-1)
        else:  # the Gumbel trick: the largest of log p + noise is a sample of p
            uniform = rng.random((batch, SIZE), dtype=np.float32)
            choice = (tempered - np.log(-np.log(uniform + 1e-10) + 1e-10)).argmax(-1)
        # Broken weights give no distribution: like a real engine, the sampler then writes one and the same token.
        choice = np.where(np.isfinite(logits).all(-1), choice, ZERO)
        mask[:, t] = alive
        tokens[alive, t] = choice[alive]
        logp[alive, t] = tempered[rows, choice][alive]
        entropy[alive, t] = entropy_of(plain)[alive]
        alive = alive & (choice != EOS)
        if not alive.any():
            break
        state, _ = cell(policy, state, np.where(alive, choice, PAD))
    return Samples(tokens, logp, entropy, mask)
