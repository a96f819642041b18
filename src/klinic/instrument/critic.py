"""What the critic knows: advantages from its values, and how much of the returns they explain."""

from __future__ import annotations

from klinic.instrument.arrays import Array, alike, kept, library, wide
from klinic.instrument.masked import correlation, masked_mean, masked_std
from klinic.instrument.responses import last_token


def at_last_token(rewards_B: Array, mask_BL: Array) -> Array:
    """A reward for the whole response as rewards of its tokens (B, L): all of it at the last one. Empty responses get none."""
    rewards_B = wide(rewards_B)
    xp = library(rewards_B)
    spread = xp.where(last_token(mask_BL), rewards_B[:, None], xp.zeros_like(rewards_B[:, None]))
    return spread


def gae(
    rewards_BL: Array, values_BL: Array, mask_BL: Array, discount: float = 1.0, decay: float = 1.0
) -> tuple[Array, Array]:
    """Generalised advantage estimates and returns (advantage + value), both (B, L), 0 where the mask is 0.

    rewards_BL, values_BL: score. discount is gamma, decay is lambda (arXiv 1506.02438). Tokens outside the mask are stepped over:
    the last token before a tool's answer looks at the first one after it. The value after the last token is 0, also for a response
    cut off by the length cap; whoever wants to bootstrap adds it to the last reward. Nothing is whitened here (verl whitens inside).
    """
    rewards_BL, values_BL = wide(rewards_BL), wide(values_BL)
    alike(rewards_BL, values_BL, "gae")
    keep = kept(mask_BL, values_BL, "gae")
    xp = library(values_BL)
    zero = xp.zeros_like(values_BL)
    rewards, values = xp.where(keep, rewards_BL, zero), xp.where(keep, values_BL, zero)
    running = following = zero[:, 0] if zero.shape[1] else zero.sum(1)
    columns = []
    for t in range(zero.shape[1] - 1, -1, -1):
        m = keep[:, t]
        delta = rewards[:, t] + discount * following - values[:, t]
        running = xp.where(m, delta + discount * decay * running, running)
        following = xp.where(m, values[:, t], following)
        columns.append(xp.where(m, running, zero[:, t]))
    advantages = xp.stack(columns[::-1], 1) if columns else zero
    return advantages, xp.where(keep, advantages + values, zero)


def explained_variance(values: Array, returns: Array, mask: Array) -> Array:
    """1 - Var(returns - values) / Var(returns) over the mask: 1 perfect, 0 no better than a constant, below 0 worse.

    All of one shape, score. NaN where the returns do not vary: then there is nothing to explain. (explained_var/token)
    """
    values, returns = wide(values), wide(returns)
    alike(values, returns, "explained_variance")
    spread = masked_std(returns, mask)
    if not spread > 0:
        return spread * float("nan")
    return 1 - (masked_std(returns - values, mask) / spread) ** 2


def returns_against_values(values: Array, returns: Array, mask: Array) -> dict[str, Array]:
    """Bias (mean of values - returns), root mean squared error, and correlation. All of one shape, score.

    Explained variance forgives a constant bias and correlation forgives the scale, too; a critic that has learnt only the batch's
    mean has correlation near 0 with a small error (seed 001 section 6.4).
    """
    values, returns = wide(values), wide(returns)
    alike(values, returns, "returns_against_values")
    off = values - returns
    return {
        "bias": masked_mean(off, mask),
        "rmse": masked_mean(off**2, mask) ** 0.5,
        "correlation": correlation(values, returns, mask),
    }
