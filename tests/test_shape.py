"""The word for what a curve did, on shapes whose word nobody would dispute."""

from __future__ import annotations

import numpy as np
import pytest

from klinic.curves.shape import Shape
from klinic.render._words import shaped
from klinic.vitals import ROLES

STEPS = np.arange(200)


def drawn(role, *knots, log=False, noise=0.02):
    at, level = (np.array(part, dtype=float) for part in zip(*knots, strict=True))
    values = np.interp(STEPS, at, np.log(level) if log else level)
    values = np.exp(values) if log else values
    return Shape(
        ROLES[role], STEPS, values * (1 + noise * np.random.default_rng(1).normal(size=200))
    )


@pytest.mark.parametrize(
    ("word", "curve"),
    [
        # A healthy KL is small at first, so that its quotient is large; it is slow all the same.
        ("rises", drawn("kl", (0, 0.002), (199, 0.045))),
        ("surges", drawn("kl", (0, 0.002), (110, 0.024), (160, 3.6), (199, 4.2), log=True)),
        ("surges", drawn("kl", (0, 0.03), (100, 0.03), (104, 0.9), (199, 0.9))),
        ("levels off", drawn("len", (0, 78), (160, 148), (199, 152))),
        ("rises", drawn("len", (0, 110), (60, 116), (199, 498))),
        ("falls", drawn("entropy", (0, 1.842), (199, 1.1))),
        ("falls", drawn("adv_std", (0, 1.03), (70, 0.98), (150, 0.05), (199, 0.03))),
        ("plunges", drawn("entropy", (0, 1.84), (50, 1.75), (125, 0.03), (199, 0.009), log=True)),
        ("falls", drawn("len", (0, 13.0), (60, 13.0), (64, 8.0), (199, 8.0))),
        ("plunges", drawn("acc", (0, 0.6), (60, 0.6), (75, 0.0), (199, 0.0), noise=0.3)),
        # Noise alone never makes a slow curve sudden.
        ("rises", drawn("trunc", (0, 0.05), (199, 0.6), noise=0.3)),
        ("drifts", drawn("ratio_geo", (0, 1.0), (60, 1.0), (199, 0.96), noise=0.005)),
        ("flat", drawn("ratio_geo", (0, 1.0), (199, 0.995), noise=0.005)),
        ("flat", drawn("entropy", (0, 1.84), (199, 1.80))),
    ],
)
def test_the_word_fits_what_is_drawn(word, curve):
    assert curve.word == word, curve.haste


def test_a_curve_that_levels_off_rose_at_its_onset():
    assert shaped("levels off", 57, "en") == "rises from step 57, levels off"
    assert shaped("levels off", 57, "zh") == "自第 57 步上升，后平"
    assert shaped("falls", 43, "zh") == "下降 自第 43 步" and shaped("flat", None, "en") == "flat"
