"""Right answers earn more than wrong ones, and what earns more has the larger advantage."""

from __future__ import annotations

import numpy as np

from klinic.instrument.masked import correlation, masked_mean
from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed, unclear


@check(90)
def reward_sign(given: Given) -> Result:
    """Mean reward of right and of wrong answers; the advantages' correlation with the rewards."""
    lacking = [name for name in ("rewards", "right") if not given.has(name)]
    if lacking:
        return missing(*lacking)
    rewards = given.per_row("rewards").astype(float)
    right = given.per_row("right") != 0
    if not np.isfinite(rewards).all():
        return failed("not-finite", rows=int((~np.isfinite(rewards)).sum()))
    if right.all() or not right.any():
        return unclear("all-right" if right.all() else "all-wrong")
    well, badly = float(rewards[right].mean()), float(rewards[~right].mean())
    if not well > badly:
        return failed("wrong-way", right=well, wrong=badly)
    if given.has("advantages") and (found := _against(given, rewards)) is not None:
        if found < 0:
            return failed("advantages", correlation=found)
        return passed("both", right=well, wrong=badly, correlation=found)
    return passed(right=well, wrong=badly)


def _against(given: Given, rewards: np.ndarray) -> float | None:
    """Pearson's correlation of rewards and advantages (a row's mean over its response); None where it cannot be had."""
    advantages = given.per_row("advantages").astype(float)
    if advantages.ndim == 2:
        if not given.has("mask"):
            return None
        wide = np.full((given.rows, given.width), np.nan)
        wide[:, given.width - advantages.shape[1] :] = advantages
        keep = given.response & ~np.isnan(wide)
        advantages = masked_mean(wide, keep, 1)
    some = ~np.isnan(advantages)
    found = float(correlation(rewards, advantages, some))
    return None if np.isnan(found) else found
