"""What the spread of the rewards says when their mean rises: which answers were given up, which ones carry it."""

from __future__ import annotations

from dataclasses import replace

from klinic.facts import Facts
from klinic.failures import Evidence, seen
from klinic.median import median

WIDER = (
    1.5  # times the early distance from the mean to the low tail: half as far again (our choice)
)
WIDENS = 1.25  # times the early std of the rewards (our choice)
CUT_SHARE = 0.05  # of the answers are cut: below it what they earn is no matter
CUT_PAID = 0.9  # of the mean reward: a cut answer that earns as much is paid like one that ends


def tail_left(facts: Facts) -> bool:
    """Whether the low tail fell while the mean did not, and lies half as far again below it."""
    low, mean = facts.shape("reward_low"), facts.shape("reward")
    if low is None or mean is None or not low.fell or mean.fell:
        return False
    return mean.after - low.after >= WIDER * max(mean.before - low.before, 1e-9)


def spread_of(facts: Facts) -> list[Evidence]:
    """Evidence of the low tail, the std, the median and the truncated answers while the mean of the rewards rises.

    Without onsets: they say what the mean hides, and the run goes on being judged by reward and acc.
    """
    mean, found = facts.shape("reward"), []
    if mean is None or not mean.rose:
        return []
    std, middle = facts.shape("reward_std"), facts.shape("reward_median")
    if tail_left(facts):
        found.append(seen(facts, "reward_low", "for", "tail-down"))
    if std is not None and std.rose and std.after >= WIDENS * max(std.before, 1e-9):
        found.append(seen(facts, "reward_std", "for", "spread-up"))
    if middle is not None and not middle.rose:
        found.append(seen(facts, "reward_median", "for", "few-high"))
    cut, trunc = facts.shape("reward_truncated"), facts.level("trunc")
    if cut is not None and trunc is not None and trunc.after >= CUT_SHARE:
        late = float(median(mean.since(float(cut.steps[-cut.window]))))
        if cut.after >= CUT_PAID * late > 0:
            found.append(seen(facts, "reward_truncated", "for", "cut-paid"))
    return [replace(e, onset=None) for e in found]
