"""Importance ratios and what the clipped objective does with them.

If the denominators are the sampler's true log-probs, the arithmetic mean of the ratio is 1 however far the policy has moved; the
geometric mean exp(mean log ratio) falls with it. Both are given, and never one for the other.
"""

from __future__ import annotations

from typing import NamedTuple

from klinic.instrument.arrays import Array, alike, library, wide
from klinic.instrument.kl import log_ratio
from klinic.instrument.masked import masked_mean


def ratio(new: Array, old: Array, mask: Array) -> Array:
    """p_new / p_old of each token, exp of the log ratio within +-20; 1 where the mask is 0. All of one shape."""
    return library(new).exp(log_ratio(new, old, mask))


def ratio_mean(new: Array, old: Array, mask: Array) -> Array:
    """Arithmetic mean of the ratio over the response tokens; NaN without any. (ratio_mean/*/token_mean)"""
    return masked_mean(ratio(new, old, mask), mask)


def ratio_geo_mean(new: Array, old: Array, mask: Array) -> Array:
    """Geometric mean of the ratio, exp(mean log ratio) = exp(-k1 of old to new); NaN without tokens. (ratio_geo/*)"""
    return library(new).exp(masked_mean(log_ratio(new, old, mask), mask))


def ess_fraction(weights: Array, mask: Array) -> Array:
    """Effective sample size over the number of samples: (sum w)^2 / (n sum w^2), between 1/n and 1.

    weights: importance ratios, of tokens (B, L) or of whole responses (B,); they need not be normalised. NaN without samples.
    Source: Kish; as a gauge of staleness arXiv 2602.17616.
    """
    weights = wide(weights)
    return masked_mean(weights, mask) ** 2 / masked_mean(weights**2, mask)


class Clipping(NamedTuple):
    """Where the clipped objective differs from the plain one, token by token (booleans, the shape of the ratio).

    ``active``: the clipped branch binds and the token gives no gradient; ``low`` and ``high`` are its two sides. ``outside``: the
    ratio is outside the band whatever the advantage's sign, so half of it still gives gradient. ``dual``: the dual clip's bound
    binds instead. PPO's clip_frac in many libraries is ``outside``; TRL's region_mean and verl's pg_clipfrac are ``active``.
    """

    active: Array
    outside: Array
    low: Array
    high: Array
    dual: Array


def clipping(
    ratio: Array, advantages: Array, low: float, high: float, dual: float | None = None
) -> Clipping:
    """Where the ratio is clipped. ratio, advantages: one shape; low, high: the band is 1 - low to 1 + high.

    dual: the upper bound c > 1 of the ratio for negative advantages (dual-clip PPO, arXiv 1912.09729), or None. Take means with
    ``masked_mean(found.active, mask)``: a padding token is not an unclipped one.
    """
    alike(ratio, advantages, "clipping")
    above, below = ratio > 1 + high, ratio < 1 - low
    at_high, at_low = above & (advantages > 0), below & (advantages < 0)
    at_dual = (advantages < 0) & (ratio > (dual if dual is not None else float("inf")))
    return Clipping(at_low | at_high, above | below, at_low, at_high, at_dual)


def outside_band(ratio: Array, mask: Array, low: float, high: float) -> Array:
    """Share of the tokens whose ratio is outside 1 - low to 1 + high; NaN without tokens. (ratio_outside/*)"""
    return masked_mean(clipping(ratio, ratio, low, high).outside, mask)
