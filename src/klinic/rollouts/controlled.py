"""Reward and win rate with the length's own pay taken off (the idea of length-controlled evaluation, seed 001 5.5; arXiv 2404.04475)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from klinic.rollouts.steps import correlation

Step = Mapping[str, Any]

EARLY = 0.1  # of the sampled steps are what later ones are compared with, at least two
SURE = 3.0  # standard errors of the pay of length below which none is taken off


def pay_of_length(steps: Mapping[int, Step]) -> float:
    """What one unit of log length earns within a prompt, pooled over all steps; 0 where that is not sure."""
    total = np.sum([s["pay"] for s in steps.values() if "pay" in s] or [[0.0] * 4], axis=0)
    r = correlation(total)
    if not math.isfinite(r) or abs(r) * math.sqrt(total[3]) < SURE:
        return 0.0
    return float(total[2] / total[0])


def controlled(steps: Mapping[int, Step]) -> dict[int, dict[str, float]]:
    """For each step the mean reward at the early length, and the share of comparisons with early samples that are won.

    A comparison is between samples of one prompt where prompts come again, else between any two; a tie counts half.
    """
    order = sorted(s for s in steps if steps[s].get("pairs"))
    if len(order) < 4:
        return {}
    pay = pay_of_length(steps)
    early = order[: max(2, math.ceil(EARLY * len(order)))]
    base = _adjusted([pair for s in early for pair in steps[s]["pairs"]], pay)
    at = float(base[:, 2].mean())
    by_prompt = {p: base[base[:, 1] == p, 0] for p in np.unique(base[:, 1])}
    found = {}
    for step in order:
        mine = _adjusted(steps[step]["pairs"], pay)
        again = [(r, by_prompt[p]) for r, p in mine[:, :2] if p in by_prompt]
        wins = [_won(r, others) for r, others in again] or [_won(r, base[:, 0]) for r in mine[:, 0]]
        found[step] = {
            "controlled": float(mine[:, 0].mean() + pay * at),
            "wins": float(np.mean(wins)),
        }
    return found


def _adjusted(pairs: Any, pay: float) -> npt.NDArray[np.float64]:
    """(n, 3): reward less the pay of its length, prompt, log length. pairs: reward, log length, prompt."""
    raw = np.array(pairs, dtype=float)
    return np.stack([raw[:, 0] - pay * raw[:, 1], raw[:, 2], raw[:, 1]], 1)


def _won(reward: float, others: npt.NDArray[np.float64]) -> float:
    return float(np.mean((reward > others) + 0.5 * (reward == others)))
