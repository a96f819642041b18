"""The controllers: their formulas, limits, what they do about NaN, and what a checkpoint keeps."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from klinic.errors import BadUsage
from klinic.instrument import EntropyTarget, ExponentialKL, ProportionalKL
from klinic.lab.runs import resume, run
from klinic.lab.settings import Settings, changed
from klinic.lab.trainer import Trainer


def test_the_exponential_form_is_the_seeds():
    beta = ExponentialKL(0.05, target=0.04, rate=0.2)
    assert beta.update(0.06) == pytest.approx(0.05 * math.exp(0.2 * (0.06 - 0.04) / 0.04))
    assert ExponentialKL(0.05, 0.04).update(0.02) == pytest.approx(0.05 * math.exp(-0.05))
    assert ExponentialKL(0.05, 0.04).update(1e9) == pytest.approx(0.1)  # one spike: at most doubled
    assert ExponentialKL(0.05, 0.04, rate=9).update(0.0) == pytest.approx(0.025)
    # Asked every fifth step it moves as far as five times.
    often, seldom = ExponentialKL(0.05, 0.04), ExponentialKL(0.05, 0.04)
    for _ in range(5):
        often.update(0.05)
    assert seldom.update(0.05, steps=5) == pytest.approx(often.value)


@pytest.mark.parametrize(
    ("kl", "error"), [(0.044, 0.1), (4.0, 0.2), (0.036, -0.1), (0.0, -0.2), (-3, -0.2)]
)
def test_the_proportional_form_is_that_of_the_paper(kl, error):
    beta = ProportionalKL(0.05, target=0.04, rate=256 / 10_000)
    assert beta.update(kl) == pytest.approx(0.05 * (1 + error * 256 / 10_000))


def test_the_entropy_target_raises_the_bonus_below_it_and_lowers_it_above():
    bonus = EntropyTarget(0.0, target=1.0, rate=0.01, damping=0)
    assert bonus.update(0.5) == pytest.approx(0.005)
    assert bonus.update(1.25) == pytest.approx(0.0025)
    assert bonus.update(9.0) == 0 and bonus.changes[-1].word == "at-low"
    damped = EntropyTarget(0.0, target=1.0, rate=1e-4, damping=50)
    assert damped.update(0.5) == pytest.approx(0.5e-4 + 25e-4)
    assert damped.update(0.9) == pytest.approx(0.6e-4 + 5e-4)
    # However far the entropy is away, an error counts as 1: far above it, the drift is one rate a step.
    for _ in range(3):
        damped.update(50.0)
    assert damped.settled == 0 and damped.update(0.9) == pytest.approx(0.1e-4 + 5e-4)
    far = EntropyTarget(0.04, target=1.0, rate=1e-3, damping=0)
    assert far.update(50.0) == pytest.approx(0.039)


@pytest.mark.parametrize("make", [ExponentialKL, ProportionalKL, EntropyTarget])
@pytest.mark.parametrize("measured", [0.0, 1e-12, 0.3, 1e300])
def test_limits_hold_whatever_is_measured(make, measured):
    controller = make(0.02, 0.1, low=0.01, high=0.04, rate=0.5)
    for _ in range(200):
        assert 0.01 <= controller.update(measured) <= 0.04
    assert controller.metrics()[f"{controller.name}/at_limit"] == 1
    assert len(controller.changes) == 100
    # No memory of how long it stood there: it leaves the limit at once.
    was = controller.value
    assert controller.update(0.0 if measured > 0.1 else 0.3) != was


@pytest.mark.parametrize("make", [ExponentialKL, ProportionalKL, EntropyTarget])
def test_what_is_not_finite_changes_nothing_and_is_counted(make):
    controller = make(0.02, 0.1)
    for bad in (math.nan, math.inf, -math.inf, np.float32("nan")):
        assert controller.update(bad) == 0.02
    assert controller.metrics()[f"{controller.name}/skipped"] == 4
    assert [c.word for c in controller.changes] == ["not-finite"] * 4
    assert controller.update(0.2) != 0.02 and controller.metrics()[
        f"{controller.name}/error"
    ] == pytest.approx(1.0)


@pytest.mark.parametrize("make", [ExponentialKL, ProportionalKL, EntropyTarget])
def test_a_checkpoint_goes_on_where_it_was(make):
    rng = np.random.default_rng(0)
    one = make(0.02, 0.1)
    assert math.isnan(one.metrics()[f"{one.name}/error"])
    for kl in rng.random(130):
        one.update(kl)
    other = make(0.03, 0.1)
    other.load_state_dict(json.loads(json.dumps(one.state_dict())))
    assert list(other.changes) == list(one.changes) and other.count == 130
    for kl in rng.random(9):
        assert one.update(kl) == other.update(kl)
    narrow = make(0.001, 0.1, low=0.001, high=0.0011)
    narrow.load_state_dict(one.state_dict())
    assert narrow.value <= 0.0011


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ExponentialKL(0.0, 0.1),
        lambda: ExponentialKL(0.1, 0.1, low=0.0),
        lambda: ProportionalKL(0.1, 0.0),
        lambda: ProportionalKL(0.1, 0.1, rate=0),
        lambda: EntropyTarget(0.1, 1.0),
        lambda: EntropyTarget(0.0, math.nan),
        lambda: EntropyTarget(0.0, 1.0, rate=-1.0),
        lambda: EntropyTarget(0.0, 1.0, damping=-1.0),
    ],
)
def test_settings_that_cannot_work_are_errors(wrong):
    with pytest.raises(BadUsage):
        wrong()


@pytest.mark.parametrize("make", [ExponentialKL, ProportionalKL])
@pytest.mark.parametrize("start", [0.005, 5.0])
def test_the_loop_settles_at_the_target_from_either_side(make, start):
    """A policy whose KL follows .005 / beta, slowly and with noise: beta is to become .1."""
    rng, beta, kl = np.random.default_rng(0), make(start, 0.05, rate=0.3), 0.0
    seen = []
    for _ in range(400):
        kl = 0.7 * kl + 0.3 * 0.005 / beta.value
        seen.append(kl)
        beta.update(kl * math.exp(0.3 * rng.standard_normal()))
    assert 0.04 < np.mean(seen[-100:]) < 0.06 and 0.08 < beta.value < 0.13


def test_the_entropy_settles_at_its_target():
    rng, bonus, entropy = np.random.default_rng(0), EntropyTarget(0.0, 1.5, rate=2e-3), 1.2
    for _ in range(400):
        entropy = 0.9 * entropy + 0.1 * (1.2 + 20 * bonus.value)
        bonus.update(entropy + 0.05 * rng.standard_normal())
    assert 1.42 < entropy < 1.58


# In the lab


def rows_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_the_lab_without_a_controller_is_as_it_was():
    trainer = Trainer(Settings(), 1)
    row, _ = trainer.train_step()
    assert not [key for key in row if "coef" in key] and "coefficients" not in trainer.state()[0]


@pytest.mark.parametrize("form", ["exponential", "proportional"])
def test_the_loss_is_made_with_the_controllers_coefficients(form):
    # A KL far above its target: beta rises as soon as there is one (at step 0 there is none), and the bonus falls to its limit.
    settings = {
        "kl_control": form,
        "kl_target": 1e-5,
        "entropy_target": 0.1,
        "entropy_coef": 0.002,
        "prompts": 2,
    }
    trainer = Trainer(changed(Settings(), settings), 1)
    rows = [trainer.train_step()[0] for _ in range(4)]
    betas = [row["kl_coef"] for row in rows]
    assert betas[0] == 0.05 > betas[1] < betas[2] < betas[3] < trainer.coefficients.beta
    assert [row["entropy_coef"] for row in rows] == [0.002, 0, 0, 0]
    # The same steps with these coefficients fixed by hand end at the same weights.
    by_hand = Trainer(changed(Settings(), {"prompts": 2}), 1)
    for row in rows:
        by_hand.settings = changed(
            by_hand.settings, {"beta": row["kl_coef"], "entropy_coef": row["entropy_coef"]}
        )
        by_hand.coefficients.under(by_hand.settings)
        by_hand.train_step()
    assert all(
        np.array_equal(by_hand.policy[name], weights) for name, weights in trainer.policy.items()
    )


def test_a_fault_switched_later_keeps_what_the_controllers_have_reached():
    settings = changed(
        Settings(),
        {"kl_control": "exponential", "kl_target": 1e-5, "prompts": 2, "eval_every": 100},
    )
    one, other = Trainer(settings, 1), Trainer(settings, 1, 3, {"temperature": 1.2})
    rows = [[trainer.train_step()[0]["kl_coef"] for _ in range(4)] for trainer in (one, other)]
    assert rows[0] == rows[1] and rows[0][3] != 0.05


def test_a_resumed_run_keeps_the_coefficients(tmp_path):
    changes = {
        "kl_control": "exponential",
        "kl_target": 0.01,
        "entropy_target": 1.6,
        "prompts": 2,
        "eval_every": 100,
    }
    run(tmp_path / "a", steps=6, changes=changes, checkpoint_every=3)
    resume(tmp_path / "a/checkpoint-3", tmp_path / "b", steps=3, checkpoint_every=3)
    assert rows_of(tmp_path / "b") == rows_of(tmp_path / "a")[3:]
    assert (tmp_path / "b/metrics.jsonl").read_text() in (tmp_path / "a/metrics.jsonl").read_text()
