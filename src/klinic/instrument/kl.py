"""How far two policies are apart on the sampled tokens: to the reference, to the old policy, to the sampler.

    k1 = log p - log q        unbiased, noisy, half of the tokens are below 0 even when all is well
    k2 = (log p - log q)^2/2  biased, never below 0
    k3 = q/p - 1 - log q/p    unbiased, never below 0: a mean below 0 is an error in the code, not noise

p is the policy the tokens count as samples of (the current one), q the other. J. Schulman, Approximating KL divergence
(joschu.net/blog/kl-approx.html). The token mean (nats per token) and the sequence sum (nats per response) are two numbers: they
differ by the length, and a policy can move the one without the other (seed 001 sections 2.1 and 10.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from klinic.instrument.arrays import Array, alike, kept, library, wide
from klinic.instrument.masked import masked_mean, masked_sum

Estimator = Literal["k1", "k2", "k3", "abs"]
LOG_RATIO_LIMIT = 20.0  # exp stays finite in float32; e^20 is far beyond any ratio that means something (verl uses 20, too)


def log_ratio(new: Array, old: Array, mask: Array) -> Array:
    """new minus old log-prob, within +-20, and 0 where the mask is 0 (also in the gradient); nats. All of one shape."""
    return library(new).clip(difference(new, old, mask), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def difference(new: Array, old: Array, mask: Array) -> Array:
    """new minus old log-prob without a limit, and 0 where the mask is 0; nats. All of one shape."""
    new, old = wide(new), wide(old)
    alike(new, old, "log-probs")
    xp = library(new)
    keep = kept(mask, new, "log-probs")
    # Cut before subtracting: padding may hold -inf in both, of which NumPy warns.
    zero = xp.zeros_like(new)
    return xp.where(keep, new, zero) - xp.where(keep, old, xp.zeros_like(old))


def k1(logp: Array, other: Array, mask: Array) -> Array:
    """log p - log q of each token, nats."""
    return difference(logp, other, mask)


def k2(logp: Array, other: Array, mask: Array) -> Array:
    """Half the squared difference of the log-probs of each token, nats."""
    return difference(logp, other, mask) ** 2 / 2


def k3(logp: Array, other: Array, mask: Array) -> Array:
    """q/p - 1 - log(q/p) of each token, nats; never below 0.

    Written with expm1: exp(d) - d - 1 in float32, as TRL and verl have it, loses all digits for |d| < 3e-4 and can come out at
    -6e-8, which looks like the negative KL of a wrong reference. The exponent is limited to 20 above; nothing is cut below.
    """
    d = -difference(logp, other, mask)
    xp = library(d)
    limited = xp.clip(d, None, LOG_RATIO_LIMIT)
    return xp.expm1(limited) - limited


ESTIMATORS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "k1": k1,
    "k2": k2,
    "k3": k3,
    "abs": lambda logp, other, mask: abs(difference(logp, other, mask)),
}


def kl_token_mean(
    logp_BL: Array, other_BL: Array, mask_BL: Array, estimator: Estimator = "k3"
) -> Array:
    """The estimate's mean over all response tokens, nats per token; NaN without any. (kl_*/K/token_mean/response_only)"""
    return masked_mean(ESTIMATORS[estimator](logp_BL, other_BL, mask_BL), mask_BL)


def kl_seq_sum(
    logp_BL: Array, other_BL: Array, mask_BL: Array, estimator: Estimator = "k3"
) -> Array:
    """The estimate summed over each response, mean over the responses, nats per response. (kl_*/K/seq_sum/response_only)

    A row without a response token is no response and does not count; NaN if there is none.
    """
    sums = masked_sum(ESTIMATORS[estimator](logp_BL, other_BL, mask_BL), mask_BL, -1)
    return masked_mean(sums, (mask_BL != 0).sum(-1))
