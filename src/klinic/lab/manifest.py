"""What became manifest in a run, judged from what the lab knows and no diagnosis sees.

Injected is not manifest: a fault may be switched and nothing follow. The lab knows the true accuracy, the sampler's
true weights and the reward's parts, so each failure has a plain test here. The tests were fixed before any diagnosis
of these runs was looked at; levels compare with the run's own first steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from klinic.lab.network import Array

WINDOW = 7  # steps of the running median
FIRST = 10  # steps that make the starting level
LASTS = 0.8  # share of the remaining steps at which the test must hold


class Series:
    """A run's curves as arrays (steps,), smoothed by a running median."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.steps = np.array([row["step"] for row in rows])

    def raw(self, name: str) -> Array:
        """As logged; NaN where not logged, None for never."""
        return np.array([_number(row.get(name)) for row in self.rows])

    def __getitem__(self, name: str) -> Array:
        values = self.raw(name)
        half = WINDOW // 2
        with np.errstate(all="ignore"):
            return np.array(
                [_median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))]
            )

    def start(self, name: str) -> float:
        """The median of the first steps."""
        return _median(self.raw(name)[:FIRST])


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _median(values: Array) -> float:
    kept = values[np.isfinite(values)]
    return float(np.median(kept)) if len(kept) else float("nan")


def _rises(s: Series, name: str, times: float, least: float = 0.0) -> Array:
    return s[name] > max(times * s.start(name), least)


def _falls(s: Series, name: str, times: float) -> Array:
    return s[name] < times * s.start(name)


def _acc_not_up(s: Series) -> Array:
    return s["acc"] < s.start("acc") + 0.1


def _evaluated(s: Series, name: str) -> Array:
    """An evaluation carried forward to the steps between."""
    values = s.raw(name)
    last = float("nan")
    for i, v in enumerate(values):
        if np.isfinite(v):
            last = v
        values[i] = last
    return values


TESTS: dict[str, Callable[[Series], Array]] = {
    "entropy-collapse": lambda s: _falls(s, "entropy", 0.25) & _falls(s, "uniq", 0.7),
    "entropy-explosion": lambda s: _rises(s, "entropy", 1.3) & _acc_not_up(s),
    "reward-hacking": lambda s: (
        (s["reward"] > s.start("reward") + 0.25) & (s["acc"] < s.start("acc") + 0.05)
    ),
    "length-explosion": lambda s: _rises(s, "len", 1.8) & _acc_not_up(s),
    "length-collapse": lambda s: _falls(s, "len", 0.6) & (s["acc"] < s.start("acc") - 0.1),
    "kl-runaway": lambda s: _rises(s, "kl", 5, 1.5) & (s["acc"] < s.start("acc") - 0.1),
    "weight-sync-failure": lambda s: (
        (s["lag"] > 0) & ((s["ratio_geo"] < 0.95) | (s["mismatch_abs"] > 0.1))
    ),
    "train-inference-mismatch": lambda s: (s["lag"] == 0) & (s["mismatch_abs"] > 0.05),
    "staleness": lambda s: (s["lag"] > 0) & (s["mismatch_abs"] > 0.1),
    "too-easy": lambda s: (s["frac_zero_std"] > 0.35) & (s["acc"] > 0.85),
    "too-hard": lambda s: (s["frac_all_wrong"] > 0.5) & (s["acc"] < 0.1),
    "no-learning": lambda s: (
        (s["kl"] < 1e-4) & (abs(_evaluated(s, "eval_acc") - _evaluated(s, "eval_acc")[0]) < 0.05)
    ),
    "lr-too-high": lambda s: (
        (s["clip_frac"] > 0.1) | (s["ratio_outside"] > 0.25) | (s["acc"] < s.start("acc") - 0.1)
    ),
    "value-blowup": lambda s: _rises(s, "value_loss", 20),
    "reference-mismatch": lambda s: np.full(len(s.steps), s.raw("kl")[0] > 0.02),
    "resume-mismatch": lambda s: s["lag"] > 0,
    "verifier-error": lambda s: s["verifier_err"] > 0.1,
    "eval-regression": lambda s: _evaluated(s, "eval_other") < _evaluated(s, "eval_other")[0] - 0.1,
    "nan": lambda s: ~np.isfinite(s.raw("loss")),
}
# These may heal by themselves: the queue is used up, the critic's optimizer adapts to what it did.
PASSES = ("resume-mismatch", "value-blowup")


def manifest(failure: str | None, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whether the failure shows, and since which step (the first from which the test holds nearly always)."""
    if failure is None or not rows:
        return {"shows": None, "step": None}
    series = Series(rows)
    with np.errstate(all="ignore"):
        holds = TESTS[failure](series)
    if failure in PASSES:
        at = np.flatnonzero(holds)
        shows = len(at) >= WINDOW
        return {"shows": shows, "step": int(series.steps[at[0]]) if shows else None}
    for i in np.flatnonzero(holds):
        if holds[i:].mean() >= LASTS and holds[-1]:
            return {"shows": True, "step": int(series.steps[i])}
    return {"shows": False, "step": None}
