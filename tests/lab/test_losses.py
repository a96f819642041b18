"""Every term of the losses against finite differences, through the whole network, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from klinic.instrument import log_softmax
from klinic.lab import losses
from klinic.lab.network import (
    backward,
    forward,
    logits_of,
    new_critic,
    new_policy,
    value,
    value_backward,
)
from klinic.lab.words import SIZE

HIDDEN, ROWS, PROMPT, LENGTH = 6, 3, 4, 5
PROBES = 12  # entries checked of every array of weights


def _double(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: array.astype(np.float64) for name, array in weights.items()}


@pytest.fixture
def case() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    policy = _double(new_policy(rng, HIDDEN))
    policy["output"] *= 8  # far from uniform, so that the entropy has a slope
    tokens = rng.integers(1, SIZE, (ROWS, PROMPT + LENGTH))
    mask = np.ones((LENGTH, ROWS))
    mask[3:, 1] = 0  # one response is shorter
    states = forward(policy, tokens[:, :-1]).states[PROMPT:]
    logp = np.take_along_axis(
        log_softmax(logits_of(policy, states)), tokens[:, PROMPT:].T[..., None], -1
    )[..., 0]
    # Old log-probs near enough that some ratios are inside the band and some outside, on both sides.
    old = logp + rng.normal(0, 0.3, logp.shape)
    reference = logp + rng.normal(0, 0.5, logp.shape)
    advantage = rng.normal(0, 1, logp.shape)
    return {
        "policy": policy,
        "tokens": tokens,
        "mask": mask,
        "old": old,
        "reference": reference,
        "advantage": advantage,
        "rng": rng,
    }


def _loss(case: dict[str, Any], knobs: losses.Knobs, aggregation: str) -> tuple[float, Any, Any]:
    done = forward(case["policy"], case["tokens"][:, :-1])
    weights = losses.token_weights(case["mask"], aggregation, LENGTH)
    terms = losses.Terms(
        case["tokens"][:, PROMPT:].T,
        case["old"],
        case["reference"],
        case["advantage"],
        weights,
    )
    loss, d_logits, _ = losses.policy_loss(
        logits_of(case["policy"], done.states[PROMPT:]), terms, knobs
    )
    return loss, d_logits, done


def _probed(weights: dict[str, Any], gradient: dict[str, Any], loss: Any, rng: Any) -> None:
    step = 1e-6
    compared = 0
    for name, array in weights.items():
        largest = np.argsort(np.abs(gradient[name]).ravel())[-PROBES:]
        for flat in {*largest.tolist(), *rng.integers(0, array.size, PROBES).tolist()}:
            at = np.unravel_index(flat, array.shape)
            kept = array[at]
            array[at] = kept + step
            up = loss()
            array[at] = kept - step
            down = loss()
            array[at] = kept
            numeric = (up - down) / (2 * step)
            assert gradient[name][at] == pytest.approx(numeric, rel=1e-5, abs=1e-8), (name, at)
            compared += abs(numeric) > 1e-8
    assert compared > 3 * PROBES  # not all of them zero


TERMS = {
    "surrogate": losses.Knobs(),
    "surrogate, unclipped": losses.Knobs(clip_low=1e9, clip_high=1e9),
    "surrogate, narrow band": losses.Knobs(clip_low=0.05, clip_high=0.1),
    "kl": losses.Knobs(beta=0.3),
    "entropy bonus": losses.Knobs(entropy_coef=0.2),
    "entropy bonus with the wrong sign": losses.Knobs(entropy_coef=-0.3),
    "temperature": losses.Knobs(temperature=0.7, beta=0.1, entropy_coef=0.1),
}


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
@pytest.mark.parametrize("term", TERMS)
def test_policy_gradient(case: dict[str, Any], term: str, aggregation: str) -> None:
    knobs = TERMS[term]
    _, d_logits, done = _loss(case, knobs, aggregation)
    gradient = backward(case["policy"], done, PROMPT - 1, d_logits)
    _probed(case["policy"], gradient, lambda: _loss(case, knobs, aggregation)[0], case["rng"])


def test_each_term_alone_moves_the_gradient(case: dict[str, Any]) -> None:
    plain = _loss(case, losses.Knobs(), "token")[1]
    for knobs in (losses.Knobs(beta=0.3), losses.Knobs(entropy_coef=0.2)):
        assert np.abs(_loss(case, knobs, "token")[1] - plain).max() > 1e-3


def test_clipping_stops_the_gradient_only_where_it_binds(case: dict[str, Any]) -> None:
    logp = np.log(np.array([1.3, 1.3, 0.7, 0.7, 1.1]))
    advantage = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    _, slope, ratio, bound = losses.clipped_surrogate(logp, np.zeros(5), advantage, 0.2, 0.2)
    assert bound.tolist() == [True, False, False, True, False]
    assert slope.tolist() == pytest.approx([0, 1.3, -0.7, 0, -1.1])
    assert ratio.tolist() == pytest.approx([1.3, 1.3, 0.7, 0.7, 1.1])


def test_supervised_gradient(case: dict[str, Any]) -> None:
    weights = case["mask"] / case["mask"].sum()
    target = case["tokens"][:, PROMPT:].T

    def loss() -> float:
        states = forward(case["policy"], case["tokens"][:, :-1]).states[PROMPT:]
        return losses.supervised_loss(logits_of(case["policy"], states), target, weights)[0]

    done = forward(case["policy"], case["tokens"][:, :-1])
    _, d_logits = losses.supervised_loss(
        logits_of(case["policy"], done.states[PROMPT:]), target, weights
    )
    _probed(case["policy"], backward(case["policy"], done, PROMPT - 1, d_logits), loss, case["rng"])


def test_critic_gradient(case: dict[str, Any]) -> None:
    rng = case["rng"]
    critic = _double(new_critic(rng, HIDDEN))
    states = forward(case["policy"], case["tokens"][:, :-1]).states[PROMPT:]
    returns, weights = rng.normal(0, 1, (LENGTH, ROWS)), case["mask"] / case["mask"].sum()
    _, d_values = losses.value_loss(value(critic, states), returns, weights)

    def loss() -> float:
        return losses.value_loss(value(critic, states), returns, weights)[0]

    _probed(critic, value_backward(critic, states, d_values), loss, rng)


def test_aggregations_weigh_as_they_say() -> None:
    mask = np.array([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    token, sequence, constant = (
        losses.token_weights(mask, how, 10) for how in ("token", "sequence", "constant")
    )
    assert token.sum(0).tolist() == pytest.approx([0.8, 0.2])
    assert sequence.sum(0).tolist() == pytest.approx([0.5, 0.5])
    assert constant.sum(0).tolist() == pytest.approx([0.2, 0.05])
