"""The instrument's arithmetic on NumPy arrays, against plain float64 loops; padding, holes and empty masks; merging of parts."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klinic import instrument as ins
from klinic import read
from klinic.errors import BadUsage
from klinic.instrument.arrays import Array
from klinic.instrument.groups import grouped
from klinic.instrument.kl import ESTIMATORS

FEW = settings(max_examples=60, deadline=None)


@st.composite
def batches(draw: Any, most: int = 9) -> tuple[Array, Array, np.random.Generator]:
    """Values and a mask (B, L) with any holes; what is outside the mask is NaN and must not be seen."""
    rows, tokens = draw(st.integers(1, 5)), draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mask = rng.random((rows, tokens)) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return np.where(mask, rng.normal(1, 2, (rows, tokens)), np.nan), mask, rng


def spread(values: list[float], ddof: int = 0) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - ddof))


def same(got: Any, want: float) -> None:
    assert float(got) == pytest.approx(want, rel=1e-9, abs=1e-12, nan_ok=True)


# Masked numbers


@FEW
@given(batches())
def test_masked_numbers_are_those_of_the_kept_list(batch: Any) -> None:
    values, mask, _ = batch
    some = [float(v) for v in values[mask]]
    same(ins.masked_mean(values, mask), sum(some) / len(some) if some else math.nan)
    same(ins.masked_std(values, mask), spread(some) if some else math.nan)
    same(ins.masked_std(values, mask, 1), spread(some, 1) if len(some) > 1 else math.nan)
    at = [0.0, 0.01, 0.5, 0.99, 1.0]
    want = np.quantile(some, at) if some else [math.nan] * 5
    assert ins.masked_quantiles(values, mask, at) == pytest.approx(list(want), nan_ok=True)
    for b, row in enumerate(mask):
        kept = values[b][row]
        same(ins.masked_mean(values, mask, 1)[b], kept.sum() / len(kept) if len(kept) else math.nan)
        same(ins.masked_sum(values, mask, 1)[b], kept.sum())


@FEW
@given(batches())
def test_whitening(batch: Any) -> None:
    values, mask, _ = batch
    white = ins.whiten(values, mask)
    assert not white[~mask].any()
    if mask.sum() > 1:
        same(white[mask].mean(), 0)
        assert white[mask].std() == pytest.approx(1, rel=1e-6)
        moved = ins.whiten(values, mask, shift_mean=False)
        assert moved[mask] == pytest.approx(white[mask] + values[mask].mean())
    assert not ins.whiten(np.full((2, 3), 5.0), np.ones((2, 3))).any()  # nothing differs


@FEW
@given(batches())
def test_correlation(batch: Any) -> None:
    a, mask, rng = batch
    b = np.where(mask, rng.normal(size=a.shape), np.nan)
    want = np.corrcoef(a[mask], b[mask])[0, 1] if mask.sum() > 1 else math.nan
    assert float(ins.correlation(a, b, mask)) == pytest.approx(want, nan_ok=True)
    assert math.isnan(ins.correlation(np.ones(4), np.arange(4.0), np.ones(4)))


def test_integers_and_half_precision_are_widened() -> None:
    ones = np.ones(4, np.float16) * 40_000
    assert float(ins.masked_mean(ones, ones > 0)) == 40_000  # their float16 sum is infinite
    assert float(ins.masked_mean(np.array([True, False]), np.array([1, 1]))) == 0.5


# Entropy


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_entropy_of_log_probs(seed: int, size: int) -> None:
    logits = np.random.default_rng(seed).normal(0, 4, (3, size))
    logits[0, 1:] = -np.inf  # one token is certain
    log_probs = ins.log_softmax(logits)
    for row, got in zip(log_probs, ins.entropy_of(log_probs), strict=True):
        want = -sum(math.exp(p) * p for p in row if p > -np.inf)
        assert got == pytest.approx(want, abs=1e-12)
    assert np.exp(log_probs).sum(-1) == pytest.approx(np.ones(3))


@FEW
@given(batches(most=40))
def test_entropy_by_position(batch: Any) -> None:
    values, mask, _ = batch
    parts: list[list[float]] = [[] for _ in range(8)]
    for row, keep in zip(values, mask, strict=True):
        some = row[keep]
        for i, value in enumerate(some):
            parts[i * 8 // len(some)].append(value)
    for got, part in zip(ins.by_relative_position(values, mask), parts, strict=True):
        same(got, sum(part) / len(part) if part else math.nan)
    edges = (0, 2, 5)
    by_place = ins.by_position(values, mask, edges)
    assert list(by_place) == [(0, 2), (2, 5), (5, None)]
    for (low, high), got in by_place.items():
        some = [v for row, keep in zip(values, mask, strict=True) for v in row[keep][low:high]]
        same(got, sum(some) / len(some) if some else math.nan)


# KL and ratios


@FEW
@given(batches())
def test_kl_of_log_prob_pairs(batch: Any) -> None:
    logp, mask, rng = batch
    logp = -abs(logp)
    other = logp + np.where(mask, rng.normal(0, 0.5, logp.shape), np.nan)
    wanted = {
        "k1": lambda p, q: p - q,
        "k2": lambda p, q: (p - q) ** 2 / 2,
        "k3": lambda p, q: math.exp(q - p) - (q - p) - 1,
        "abs": lambda p, q: abs(p - q),
    }
    for name, formula in wanted.items():
        rows = [
            [formula(p, q) for p, q in zip(ps[k], qs[k], strict=True)]
            for ps, qs, k in zip(logp, other, mask, strict=True)
        ]
        tokens, sums = [t for row in rows for t in row], [sum(row) for row in rows if row]
        mean = sum(tokens) / len(tokens) if tokens else math.nan
        same(ins.kl_token_mean(logp, other, mask, name), mean)  # type: ignore[arg-type]
        mean = sum(sums) / len(sums) if sums else math.nan
        same(ins.kl_seq_sum(logp, other, mask, name), mean)  # type: ignore[arg-type]


def test_estimators_have_the_true_kl_as_their_mean() -> None:
    rng = np.random.default_rng(0)
    p, q = (ins.log_softmax(rng.normal(size=50)) for _ in range(2))
    true, every = (np.exp(p) * (p - q)).sum(), np.ones(50)
    for name in ("k1", "k3"):
        assert (np.exp(p) * ESTIMATORS[name](p, q, every)).sum() == pytest.approx(true)
    assert (np.exp(p) * ESTIMATORS["k2"](p, q, every)).sum() != pytest.approx(true)


def test_k3_in_float32_is_never_below_zero() -> None:
    logp = np.linspace(-9, -0.1, 20_000).astype(np.float32)
    other = logp + np.random.default_rng(0).normal(0, 1e-4, logp.shape).astype(np.float32)
    every = np.ones(logp.shape)
    got = ins.k3(logp, other, every)
    d = (other - logp).astype(np.float64)
    assert got.min() >= 0 and got.dtype == np.float32
    assert got == pytest.approx(np.expm1(d) - d, rel=2e-3, abs=1e-11)
    plain = np.exp(other - logp) - (other - logp) - 1  # as in TRL and verl
    assert plain.min() < 0  # a negative KL where there is none


def test_minus_infinity_in_the_padding_is_not_subtracted() -> None:
    logp = np.array([[-1.0, -np.inf]])
    assert ins.kl_token_mean(logp, logp - 1, np.array([[1, 0]]), "k1") == 1


def test_a_huge_log_ratio_stays_finite() -> None:
    far = np.array([-100.0, 0.0], np.float32)
    assert np.isfinite(ins.k3(far, far[::-1], np.ones(2))).all()
    assert ins.k3(far[1:], far[:1], np.ones(1))[0] == pytest.approx(99)  # verl cuts this at 10
    assert ins.ratio(far[1:], far[:1], np.ones(1))[0] == pytest.approx(math.exp(20))


@FEW
@given(batches())
def test_ratios(batch: Any) -> None:
    new, mask, rng = batch
    old = new + np.where(mask, rng.normal(0, 0.3, new.shape), np.nan)
    ratios = [math.exp(a - b) for a, b in zip(new[mask], old[mask], strict=True)]
    n = len(ratios)
    same(ins.ratio_mean(new, old, mask), sum(ratios) / n if n else math.nan)
    same(ins.ratio_geo_mean(new, old, mask), math.prod(ratios) ** (1 / n) if n else math.nan)
    ess = sum(ratios) ** 2 / sum(r * r for r in ratios) / n if n else math.nan
    same(ins.ess_fraction(ins.ratio(new, old, mask), mask), ess)
    outside = sum(not 0.8 <= r <= 1.28 for r in ratios) / n if n else math.nan
    same(ins.outside_band(ins.ratio(new, old, mask), mask, 0.2, 0.28), outside)


def test_the_arithmetic_mean_of_a_true_ratio_is_one_and_the_geometric_is_not() -> None:
    rng = np.random.default_rng(1)
    old, new = (ins.log_softmax(rng.normal(0, 1.5, 30)) for _ in range(2))
    every = np.ones(30)
    assert (np.exp(old) * ins.ratio(new, old, every)).sum() == pytest.approx(1)
    geometric = math.exp((np.exp(old) * (new - old)).sum())
    assert (
        geometric == pytest.approx(math.exp(-(np.exp(old) * (old - new)).sum())) and geometric < 0.3
    )


@pytest.mark.parametrize(
    ("ratio", "advantage", "found"),
    [
        (1.5, 1.0, "active outside high"),
        (1.5, -1.0, "outside"),  # the loss is worse than the clipped one: the gradient flows
        (0.5, -1.0, "active outside low"),
        (0.5, 1.0, "outside"),
        (1.1, 1.0, ""),
        (1.5, 0.0, "outside"),
        (4.0, -1.0, "outside dual"),
        (4.0, 1.0, "active outside high"),
        (math.nan, 1.0, ""),
    ],
)
def test_clipping(ratio: float, advantage: float, found: str) -> None:
    got = ins.clipping(np.array([ratio]), np.array([advantage]), 0.2, 0.2, 3.0)
    assert " ".join(name for name, hit in got._asdict().items() if hit[0]) == found
    assert not ins.clipping(np.array([ratio]), np.array([advantage]), 0.2, 0.2).dual.any()


@FEW
@given(st.floats(0.01, 5), st.floats(-3, 3))
def test_clipping_is_active_where_the_objective_has_no_slope(
    ratio: float, advantage: float
) -> None:
    if min(abs(ratio - 0.8), abs(ratio - 1.2)) < 1e-3 or abs(advantage) < 1e-3:
        return

    def objective(r: float) -> float:
        return min(r * advantage, min(max(r, 0.8), 1.2) * advantage)

    slope = objective(ratio + 1e-5) - objective(ratio - 1e-5)
    got = ins.clipping(np.array([ratio]), np.array([advantage]), 0.2, 0.2)
    assert bool(got.active[0]) == (slope == 0)


# Groups


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4), st.booleans())
def test_groups_by_id_against_a_dictionary(seed: int, rows: int, ids: int, masked: bool) -> None:
    rng = np.random.default_rng(seed)
    rewards, group = rng.integers(0, 2, rows).astype(float), rng.integers(0, ids, rows) * 7
    mask = rng.random(rows) < 0.7 if masked else np.ones(rows, bool)
    found: dict[int, list[float]] = {}
    for reward, name, keep in zip(rewards, group, mask, strict=True):
        if keep:
            found.setdefault(int(name), []).append(reward)
    count = len(found)

    def share(test: Any) -> float:
        return sum(map(test, found.values())) / count if count else math.nan

    same(ins.zero_std_share(rewards, group, mask), share(lambda g: len(set(g)) == 1))
    same(ins.all_right_share(rewards, group, mask), share(lambda g: min(g) == 1))
    same(ins.all_wrong_share(rewards, group, mask), share(lambda g: max(g) == 0))
    got = ins.group_advantages(rewards, group, mask, small=1e-4)
    for i in range(rows):
        mine = found.get(int(group[i]), [])
        want = (rewards[i] - sum(mine) / len(mine)) / (spread(mine) + 1e-4) if mask[i] else 0
        same(got[i], want)


def test_groups_side_by_side_are_groups_by_id() -> None:
    rewards = np.random.default_rng(0).normal(size=12)
    by_size = ins.group_advantages(rewards, 4)
    assert by_size == pytest.approx(ins.group_advantages(rewards, np.repeat([5, 2, 9], 4)))
    mixed = np.random.default_rng(1).permutation(12)
    by_id = ins.group_advantages(rewards[mixed], np.repeat([5, 2, 9], 4)[mixed])
    assert by_id == pytest.approx(by_size[mixed])


def test_the_std_of_group_advantages_is_the_root_of_the_share_of_groups_that_differ() -> None:
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(40, 8))
    rewards[:13] = 1.0
    got = ins.group_advantages(rewards.reshape(-1), 8, small=0.0 + 1e-12).std()
    f = float(ins.zero_std_share(rewards.reshape(-1), 8))
    assert f == pytest.approx(13 / 40) and got == pytest.approx(math.sqrt(1 - f))
    with_bessel = ins.group_advantages(rewards.reshape(-1), 8, small=1e-12, ddof=1).std()
    assert with_bessel == pytest.approx(math.sqrt((1 - f) * 7 / 8))  # TRL, verl


def test_a_reward_nobody_could_give_is_no_member_of_its_group() -> None:
    rewards = np.array([1.0, np.nan, 1.0, 0.0, np.nan, np.nan])
    assert float(ins.zero_std_share(rewards, 2)) == 0.5  # (1), (1, 0), none
    assert ins.group_advantages(rewards, 2) == pytest.approx([0, 0, 1, -1, 0, 0], rel=1e-3)


def test_groups_that_do_not_fit() -> None:
    with pytest.raises(BadUsage, match="no whole groups of 4"):
        ins.zero_std_share(np.ones(6), 4)
    with pytest.raises(BadUsage, match="ids for 6"):
        grouped(np.ones(6), np.ones(5, int))


# Critic


def right_padded(rng: np.random.Generator, rows: int, longest: int) -> Array:
    return np.arange(longest) < rng.integers(1, longest + 1, rows)[:, None]


def test_gae_against_its_definition() -> None:
    rng = np.random.default_rng(0)
    mask = right_padded(rng, 4, 7)
    rewards, values = (np.where(mask, rng.normal(size=mask.shape), np.nan) for _ in range(2))
    got, returns = ins.gae(rewards, values, mask, discount=0.97, decay=0.9)
    for b, n in enumerate(mask.sum(1)):
        following = np.append(values[b, 1:n], 0)
        delta = rewards[b, :n] + 0.97 * following - values[b, :n]
        for t in range(n):
            want = sum((0.97 * 0.9) ** (k - t) * delta[k] for k in range(t, n))
            same(got[b, t], want)
            same(returns[b, t], want + values[b, t])
    assert not got[~mask].any() and not returns[~mask].any()


def test_gae_steps_over_what_a_tool_wrote() -> None:
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 1, 5))
    mask = np.array([[True, True, False, False, True]])
    got, _ = ins.gae(rewards, values, mask, 0.9, 0.8)
    short, _ = ins.gae(rewards[:, [0, 1, 4]], values[:, [0, 1, 4]], np.ones((1, 3)), 0.9, 0.8)
    assert got[mask] == pytest.approx(short[0])


def test_a_reward_for_the_response_lies_on_its_last_token() -> None:
    mask = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]])
    got = ins.at_last_token(np.array([5.0, 6.0, 7.0]), mask)
    assert got.tolist() == [[0, 5, 0], [0, 0, 6], [0, 0, 0]]


def test_explained_variance_and_its_companions() -> None:
    rng = np.random.default_rng(0)
    returns, every = rng.normal(size=(3, 5)), np.ones((3, 5))
    same(ins.explained_variance(returns, returns, every), 1)
    same(ins.explained_variance(returns + 3, returns, every), 1)  # a constant bias is forgiven,
    same(ins.returns_against_values(returns + 3, returns, every)["bias"], 3)  # here it is not
    same(ins.explained_variance(np.zeros((3, 5)), returns, every), 0)
    assert ins.explained_variance(-returns, returns, every) == pytest.approx(-3)
    assert math.isnan(ins.explained_variance(returns, np.ones((3, 5)), every))
    same(ins.returns_against_values(2 * returns, returns, every)["correlation"], 1)


# Responses


def test_lengths_endings_and_truncation() -> None:
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
    ids = np.array([[5, 5, 5, 2], [5, 2, 2, 2], [2, 2, 5, 3], [5, 2, 5, 5], [2, 2, 2, 2]])
    assert ins.lengths(mask).tolist() == [4, 2, 2, 4, 0]
    # The first ends with the last token that fits: ended, though verl's clip_ratio counts it as cut off. The fourth went on after
    # an end token; an end token that is only padding ends nothing.
    assert ins.ended(ids, mask, 2).tolist() == [True, True, False, False, False]
    assert ins.ended(ids, mask, [2, 3]).tolist() == [True, True, True, False, False]
    assert ins.at_cap(mask, 4).tolist() == [True, False, False, True, False]


def test_unique_share() -> None:
    ids = np.array([[1, 2, 0], [0, 1, 2], [1, 2, 3], [7, 7, 7]])
    mask = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [1, 0, 0]])
    assert ins.unique_share(ids, mask, 4) == 0.75  # the first two differ in padding only
    assert ins.unique_share(ids, mask, np.array([3, 3, 8, 8])) == 0.75  # (1/2 + 2/2) / 2
    assert ins.unique_share(np.ones((8, 3), int), np.ones((8, 3)), 8) == 1 / 8


# Padding, empty masks, shapes


def test_padding_on_the_left_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    right = right_padded(rng, 5, 9)
    left = right[:, ::-1]

    def moved(values: Array) -> Array:
        out = np.full_like(values, 0)
        out[left] = values[right]
        return out

    a, b = rng.normal(size=(2, 5, 9))
    ids = rng.integers(0, 3, (5, 9))
    for f in (ins.kl_token_mean, ins.kl_seq_sum, ins.ratio_geo_mean, ins.explained_variance):
        same(f(moved(a), moved(b), left), float(f(a, b, right)))
    assert ins.by_relative_position(moved(a), left) == pytest.approx(
        ins.by_relative_position(a, right), nan_ok=True
    )
    assert list(ins.by_position(moved(a), left).values()) == pytest.approx(
        list(ins.by_position(a, right).values()), nan_ok=True
    )
    assert ins.gae(moved(a), moved(b), left, 1, 0.9)[0][left] == pytest.approx(
        ins.gae(a, b, right, 1, 0.9)[0][right]
    )
    assert ins.whiten(moved(a), left)[left] == pytest.approx(ins.whiten(a, right)[right])
    assert ins.ended(moved(ids), left, 2).tolist() == ins.ended(ids, right, 2).tolist()
    assert ins.unique_share(moved(ids), left, 5) == ins.unique_share(ids, right, 5)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_an_empty_mask_gives_nan_or_nothing_and_no_warning(shape: tuple[int, int]) -> None:
    values, mask = np.full(shape, np.nan), np.zeros(shape)
    for f in (ins.masked_mean, ins.masked_std, ins.ess_fraction):
        assert math.isnan(f(values, mask))
    pairs = (ins.kl_token_mean, ins.kl_seq_sum, ins.ratio_mean, ins.ratio_geo_mean)
    for f in (*pairs, ins.explained_variance, ins.correlation):
        assert math.isnan(f(values, values, mask))
    assert math.isnan(ins.masked_quantiles(values, mask, [0.5])[0])
    assert not ins.whiten(values, mask).any() and not ins.masked_sum(values, mask, 1).any()
    assert not ins.gae(values, values, mask)[0].any()
    assert all(math.isnan(v) for v in ins.by_relative_position(values, mask))
    assert all(math.isnan(v) for v in ins.by_position(values, mask).values())
    assert not ins.lengths(mask).any() and not ins.ended(values, mask, 2).any()
    rewards = np.zeros(shape[0])
    assert math.isnan(ins.zero_std_share(rewards, 1, np.zeros(shape[0])))
    tally = ins.Tally(quantiles=True)
    tally.add(values, mask)
    assert tally.count == 0 and tally.total == 0
    read = (tally.mean, tally.std(), tally.low, tally.high, tally.ess_fraction, tally.quantile(0.5))
    assert all(map(math.isnan, read))


@pytest.mark.parametrize(
    "call",
    [
        lambda v, m: ins.masked_mean(v, m),
        lambda v, m: ins.masked_std(v, m),
        lambda v, m: ins.whiten(v, m),
        lambda v, m: ins.kl_token_mean(v, v, m),
        lambda v, m: ins.ratio_mean(v, v[:, :-1], v > 9),
        lambda v, m: ins.gae(v, v, m),
        lambda v, m: ins.clipping(v, v[0], 0.2, 0.2),
        lambda v, m: ins.Tally().add(v, m),
        lambda v, m: ins.ended(v, m, 2),
    ],
)
def test_nothing_is_broadcast(call: Any) -> None:
    with pytest.raises(BadUsage, match=r"\(2, 4\)"):
        call(np.ones((2, 4)), np.ones((2, 5)))


# Merging


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(1, 300), st.integers(1, 7))
def test_parts_of_any_size_make_the_whole(seed: int, size: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(0, rng.choice([1e-3, 1, 5]), size)) * rng.choice([-1, 0, 1], size)
    values += rng.choice([0, 1000.0])
    mask = rng.random(size) < 0.8
    whole = ins.Tally(quantiles=True)
    whole.add(values, mask)
    merged = ins.Tally(quantiles=True)
    for rows in np.array_split(rng.permutation(size), parts):
        part = ins.Tally(quantiles=True)
        part.add(values[rows], mask[rows])
        merged.merge(part)
    some = values[mask]
    assert (merged.count, whole.count) == (len(some), len(some))
    if not len(some):
        return
    for got in (merged, whole):
        scale = abs(some).max() + 1e-300
        assert got.mean == pytest.approx(some.mean(), rel=1e-12, abs=1e-12 * scale)
        assert got.std() == pytest.approx(some.std(), rel=1e-9, abs=1e-12 * scale)
        assert (got.low, got.high) == (some.min(), some.max())
        assert got.total == pytest.approx(some.sum(), rel=1e-12, abs=1e-9 * scale)
    for at in (0.0, 0.01, 0.5, 0.99, 1.0):
        assert merged.quantile(at) == whole.quantile(at)
        lower = np.sort(some)[math.floor(at * (len(some) - 1))]
        assert whole.quantile(at) == pytest.approx(lower, rel=1.01e-3, abs=1e-9)


def test_a_mean_of_means_is_another_number() -> None:
    short, long = ins.Tally(), ins.Tally()
    short.add(np.ones(2))
    long.add(np.zeros(8))
    assert (short.mean + long.mean) / 2 == 0.5
    long.merge(short)
    assert long.mean == pytest.approx(0.2)


def test_a_nan_that_counts_is_not_hidden() -> None:
    tally = ins.Tally(quantiles=True)
    tally.add(np.array([1.0, np.nan, 2.0]))
    assert tally.count == 3 and math.isnan(tally.mean) and math.isnan(tally.quantile(0.5))
    with pytest.raises(ValueError, match="keeps no quantiles"):
        ins.Tally().quantile(0.5)


def one_step(rng: np.random.Generator, rows: int = 16, tokens: int = 12) -> dict[str, Array]:
    """What a training step holds, all in rows; groups of four."""
    mask = right_padded(rng, rows, tokens)
    found = {"mask": mask, "ids": rng.integers(0, 4, (rows, tokens))}
    for name in ("logp", "old", "reference", "sampler", "values", "returns"):
        found[name] = np.where(mask, -rng.exponential(1, mask.shape), np.nan)
    found["entropy"] = np.where(mask, rng.exponential(1, mask.shape), np.nan)
    found["rewards"] = rng.integers(0, 2, rows).astype(float)
    found["advantages"] = np.where(
        mask, np.repeat(ins.group_advantages(found["rewards"], 4)[:, None], tokens, 1), 0
    )
    return found


def count_in(step: ins.Step, batch: dict[str, Array], rows: slice, groups: slice) -> None:
    """A micro-batch for the policy and the critic; whole groups for the responses."""
    b = {name: values[rows] for name, values in batch.items()}
    step.policy(
        b["mask"],
        b["logp"],
        old=b["old"],
        reference=b["reference"],
        sampler=b["sampler"],
        entropy=b["entropy"],
        advantages=b["advantages"],
        dual=3.0,
    )
    step.critic(b["values"], b["returns"], b["mask"])
    g = {name: values[groups] for name, values in batch.items()}
    if len(g["mask"]):
        step.responses(
            g["mask"],
            rewards=g["rewards"],
            groups=4,
            right=g["rewards"],
            parts={"format": g["rewards"] * 0.2},
            ids=g["ids"],
            eos=2,
            cap=12,
        )


def test_a_step_in_micro_batches_is_the_whole_step() -> None:
    batch = one_step(np.random.default_rng(0))
    whole, parts = ins.Step(), ins.Step()
    count_in(whole, batch, slice(None), slice(None))
    for i, (first, last) in enumerate([(0, 3), (3, 4), (4, 11), (11, 16)]):
        part = ins.Step()
        count_in(part, batch, slice(first, last), slice(4 * i, 4 * i + 4))
        parts.merge(part)
    want = whole.results()
    assert parts.results() == pytest.approx(want, rel=1e-9, abs=1e-12)
    assert len(want) > 90 and not any(map(math.isnan, want.values()))


def test_a_steps_numbers_are_the_functions() -> None:
    batch = one_step(np.random.default_rng(1))
    step = ins.Step()
    count_in(step, batch, slice(None), slice(None))
    got, b = step.results(), batch
    mask, every = b["mask"], np.ones(16)
    length = ins.lengths(mask)
    clipped = ins.clipping(ins.ratio(b["logp"], b["old"], mask), b["advantages"], 0.2, 0.2, 3.0)
    whole = np.exp([(n - o)[m].sum() for n, o, m in zip(b["logp"], b["old"], mask, strict=True)])
    want = {
        "entropy/token_mean/response_only": ins.masked_mean(b["entropy"], mask),
        "entropy_by_position/7": ins.by_relative_position(b["entropy"], mask)[7],
        "kl_ref/k3/token_mean/response_only": ins.kl_token_mean(b["logp"], b["reference"], mask),
        "kl_ref/k3/seq_sum/response_only": ins.kl_seq_sum(b["logp"], b["reference"], mask),
        "kl_old/k1/token_mean/response_only": ins.kl_token_mean(b["old"], b["logp"], mask, "k1"),
        "kl_rollout/abs/token_mean/response_only": ins.masked_mean(
            abs(b["logp"] - b["sampler"]), mask
        ),
        "ratio_mean/new_over_old/token_mean": ins.ratio_mean(b["logp"], b["old"], mask),
        "ratio_geo/train_over_rollout": ins.ratio_geo_mean(b["logp"], b["sampler"], mask),
        "mismatch_ess/share": ins.ess_fraction(ins.ratio(b["logp"], b["sampler"], mask), mask),
        "ess/new_over_old/seq": ins.ess_fraction(
            np.clip(whole, math.exp(-20), math.exp(20)), every
        ),
        "clip_frac/token_mean/active": ins.masked_mean(clipped.active, mask),
        "clip_frac/token_mean/dual_clip": ins.masked_mean(clipped.dual, mask),
        "adv_std/group_normalised": ins.group_advantages(b["rewards"], 4).std(),
        "adv_max/token/response_only": b["advantages"].max(),
        "groups/zero_std_frac": ins.zero_std_share(b["rewards"], 4),
        "reward_std/batch": b["rewards"].std(),
        "reward_std/group": b["rewards"].reshape(-1, 4).std(1).mean(),
        "len/response_mean": length.mean(),
        "len/response_max": length.max(),
        "len/right_mean": length[b["rewards"] == 1].mean(),
        "len/wrong_mean": length[b["rewards"] == 0].mean(),
        "acc/seq_mean": b["rewards"].mean(),
        "reward_part/format": 0.2 * b["rewards"].mean(),
        "trunc/frac_finish_length": 1 - ins.ended(b["ids"], mask, 2).mean(),
        "samples/unique_frac": ins.unique_share(b["ids"], mask, 4),
        "relation/reward_len": ins.correlation(b["rewards"], length, every),
        "relation/returns_values": ins.correlation(b["values"], b["returns"], mask),
        "explained_var/token": ins.explained_variance(b["values"], b["returns"], mask),
    }
    assert {name: got[name] for name in want} == pytest.approx(
        {k: float(v) for k, v in want.items()}
    )
    low, high = ins.masked_quantiles(ins.log_ratio(b["logp"], b["old"], mask), mask, [0.01, 0.99])
    assert math.log(got["ratio_quantile/new_over_old/p99"]) == pytest.approx(high, rel=0.1)
    assert math.log(got["ratio_quantile/new_over_old/p01"]) == pytest.approx(low, rel=0.1)


def test_klinic_reads_every_name_as_it_stands(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    with log.open("w") as stream:
        for number in range(5):
            step = ins.Step()
            count_in(step, one_step(np.random.default_rng(number)), slice(None), slice(None))
            stream.write(json.dumps({"step": number, **step.results()}) + "\n")
    run = read(log)
    assert not run.unread_keys
    for name, value in step.results().items():
        assert run.curves[name].values[-1] == pytest.approx(value), name
        assert run.curves[name].metric.definition


def test_what_is_not_given_is_not_logged() -> None:
    step = ins.Step(quantiles=False)
    step.policy(np.ones((2, 3)), -np.ones((2, 3)), reference=-np.ones((2, 3)))
    step.responses(np.ones((2, 3)), rewards=np.array([1.0, np.nan]))
    step.add("my/own", np.array([1.0, 3.0]))
    got = step.results()
    assert got["kl_ref/k3/token_mean/response_only"] == 0 and got["my/own"] == 2
    assert got["reward/seq_mean/raw"] == 1 and got["reward/missing_frac"] == 0.5
    assert not [
        k for k in got if k.startswith(("entropy", "ratio", "clip", "groups", "trunc", "acc"))
    ]
    assert not [k for k in got if "/p" in k]  # no quantiles were kept


def test_torch_is_imported_by_nobody_who_does_not_use_it() -> None:
    code = (
        "import sys, klinic; assert 'klinic.instrument' not in sys.modules; "
        "import klinic.instrument as i, numpy; i.masked_mean(numpy.ones(3), numpy.ones(3)); "
        "assert not {'torch', 'ddsketch', 'klinic.run', 'klinic.lab'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError):
        ins.no_such_thing  # noqa: B018
