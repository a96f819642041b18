"""Spikes come back, jumps stay, and noise is neither."""

from __future__ import annotations

import numpy as np
import pytest

from klinic.curves.jumps import change_at, departure, jump, spikes
from klinic.curves.shape import Shape
from klinic.vitals import ROLES

STEPS = np.arange(200)


def curve(role: str, level: float, seed: int = 0, noise: float = 0.05) -> np.ndarray:
    return level * (1 + noise * np.random.default_rng(seed).normal(size=len(STEPS)))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_a_spike_of_up_to_three_rows_is_found(width):
    values = curve("kl", 0.05)
    values[100 : 100 + width] = 2.0
    (found,) = spikes(Shape(ROLES["kl"], STEPS, values), times=5, sure=8)
    assert (found.first, found.last) == (100, 99 + width)
    assert found.height == pytest.approx(40, rel=0.1)


@pytest.mark.parametrize("rows", [slice(100, 110), slice(100, None), slice(0, 2), slice(198, None)])
def test_what_lasts_or_does_not_come_back_is_no_spike(rows):
    values = curve("kl", 0.05)
    values[rows] = 2.0
    assert spikes(Shape(ROLES["kl"], STEPS, values), times=5, sure=8) == []


def test_a_batch_without_a_gradient_is_no_level_to_stand_out_from():
    values = curve("grad_norm", 0.3)
    values[np.random.default_rng(1).random(len(STEPS)) < 0.6] = 0.0
    assert spikes(Shape(ROLES["grad_norm"], STEPS, values), times=5, sure=8) == []


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_ramps_do_not_jump(seed):
    flat = Shape(ROLES["reward"], STEPS, curve("reward", 0.5, seed, 0.2))
    ramp = Shape(ROLES["reward"], STEPS, curve("reward", 0.5, seed) + STEPS / 200)
    for shape in (flat, ramp):
        found = jump(shape)
        assert found is None or found.z < 6


def test_a_jump_is_dated_to_its_row():
    values = curve("reward", 0.5)
    values[80:] *= 9
    found = jump(Shape(ROLES["reward"], STEPS, values))
    assert found is not None and found.step == 80
    assert found.after == pytest.approx(4.5, rel=0.05) and found.z > 6


def test_departure_and_change_at_a_step():
    values = curve("reward", 0.5)
    values[50] = 2.0
    shape = Shape(ROLES["reward"], STEPS, values)
    assert departure(shape, 50) > 6 > abs(departure(shape, 60))
    assert departure(shape, 1000) == 0.0
    assert change_at(shape, 100)[1] < 6
    assert change_at(shape, 0) == (0.0, 0.0)


def test_a_short_curve_has_neither():
    shape = Shape(ROLES["reward"], STEPS[:5], curve("reward", 0.5)[:5])
    assert spikes(shape, times=5, sure=8) == [] and jump(shape) is None
