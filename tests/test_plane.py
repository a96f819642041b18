"""KL that goes on while what it bought is lost: the better checkpoint is named; a fair exchange is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from klinic.curves.plane import overspent
from klinic.curves.shape import Shape
from klinic.vitals import ROLES

STEPS = np.arange(0, 200)


def kl(end=0.4):
    return Shape(ROLES["kl"], STEPS, np.linspace(0.001, end, 200))


def acc(values, every=1, seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    at = STEPS[::every]
    return Shape(
        ROLES["acc"],
        at,
        np.clip(np.interp(at, *zip(*values, strict=True)) + rng.normal(0, noise, len(at)), 0, 1),
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("every", [1, 10])
def test_the_best_point_is_found(seed, every):
    found = overspent(kl(), acc([(0, 0.3), (80, 0.8), (199, 0.3)], every, seed))
    assert found is not None
    assert 55 <= found.step <= 105
    assert found.kl_end > 1.5 * found.kl and found.best - found.end > 0.3


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_a_gain_and_noise_alone_are_left_alone(seed, noise):
    assert overspent(kl(), acc([(0, 0.3), (199, 0.7)], seed=seed, noise=noise)) is None
    assert overspent(kl(), acc([(0, 0.5), (199, 0.5)], seed=seed, noise=noise)) is None


def test_a_loss_at_no_further_kl_is_not_its_price():
    assert overspent(kl(0.005), acc([(0, 0.3), (80, 0.8), (199, 0.3)])) is None


def test_few_evaluations_show_no_frontier():
    assert overspent(kl(), acc([(0, 0.3), (80, 0.8), (199, 0.3)], every=50)) is None
