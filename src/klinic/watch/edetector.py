"""An e-detector: how much the steps so far speak against "healthy", with a bound on how often that is wrong.

Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change detection" (2022): a sum of
e-processes, one begun at every step, exceeds 1/alpha on average no sooner than after 1/alpha healthy steps, whatever the
distribution, as long as each factor's healthy mean is at most 1. Here at most one healthy step in ten may lie outside its band
given the past: 0.1 * 6 + 0.9 * 0.444 = 1. Over m metrics the level is m/alpha (Bonferroni, valid under any dependence).
Correlated noise breaks "given the past", which is why alpha is small, and why the false alarms were counted (docs/watch.md).
"""

from __future__ import annotations

from collections.abc import Iterable

OUTSIDE, INSIDE = 6.0, 0.444
MEAN_STEPS = 5000  # between false alarms, over all metrics of a run (science.md 2.4)


def advance(e: float, flags: Iterable[bool], level: float) -> tuple[float, int | None]:
    """(E after all flags, index of the first flag at which it reached the level). E stays finite: it is cut at the level squared."""
    reached = None
    for i, outside in enumerate(flags):
        e = min((e + 1) * (OUTSIDE if outside else INSIDE), level * level)
        if reached is None and e >= level:
            reached = i
    return e, reached
