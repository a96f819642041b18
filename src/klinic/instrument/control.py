"""Coefficients that follow a target: of the KL penalty, and of the entropy bonus.

A controller takes what a step measured and gives the coefficient of the next one. It turns one valve in a closed loop and no more: where
the reward's scale or the learning rate is wrong, it runs to its limit and says so (seed 001 section 2.5).

    beta = ExponentialKL(0.05, target=0.03, low=1e-3, high=1.0)
    ...
    loss = policy_loss + beta.value * kl
    beta.update(kl_of_this_step)                  # the same KL, of the same definition, as the target
    log(beta.metrics())
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from klinic.errors import BadUsage

KEPT = 100  # changes that are remembered
MOST = 2.0  # a coefficient at most doubles or halves in one update: one spike of the KL is no trend (our choice)
CLIP = 0.2  # of the relative error (Ziegler et al. 2019, arXiv 1909.08593, section 2.2)


class Change(NamedTuple):
    """One update: what was measured, the coefficient before and after, and raised, lowered, kept, at-low, at-high or not-finite."""

    number: int
    measured: float
    before: float
    after: float
    word: str


class Controller(ABC):
    """What the controllers share: limits, a memory of the last changes, and a state to save. ``name`` is what it logs under."""

    name = "coef"

    def __init__(self, value: float, target: float, low: float, high: float) -> None:
        for what, number in (("value", value), ("target", target), ("low", low), ("high", high)):
            if not math.isfinite(number):
                raise BadUsage(
                    f"{number} is not finite",
                    f"{type(self).__name__}({what}=)",
                    "give a finite number",
                )
        if not target > 0:
            raise BadUsage(
                f"{target} is not above 0",
                f"{type(self).__name__}(target=)",
                "give a number above 0",
            )
        if not low <= value <= high:
            raise BadUsage(
                f"the coefficient {value} is not between its limits {low} and {high}",
                type(self).__name__,
                "begin between low and high",
            )
        self.value, self.target, self.low, self.high = value, target, low, high
        self.count = self.skipped = 0  # updates, and those that measured nothing finite
        self.changes: deque[Change] = deque(maxlen=KEPT)

    def update(self, measured: float, steps: float = 1.0) -> float:
        """The coefficient for the next step. measured: in the target's unit; one that is not finite changes nothing.

        steps: how many steps have passed since the last update; a controller that is asked every fifth step moves as far.
        """
        before, measured = self.value, float(measured)
        self.count += 1
        if not math.isfinite(measured):
            self.skipped += 1
            word = "not-finite"
        else:
            wanted = self._next(measured / self.target - 1, steps)
            self.value = min(max(wanted, self.low), self.high)
            word = "at-low" if wanted < self.low else "at-high" if wanted > self.high else ""
            word = word or (
                "raised" if self.value > before else "lowered" if self.value < before else "kept"
            )
        self.changes.append(Change(self.count, measured, before, self.value, word))
        return self.value

    @abstractmethod
    def _next(self, error: float, steps: float) -> float:
        """The coefficient without its limits. error: measured / target - 1."""

    def metrics(self) -> dict[str, float]:
        """What to log: the coefficient, the relative error, whether a limit holds it, updates that measured nothing."""
        last = self.changes[-1] if self.changes else None
        return {
            self.name: self.value,
            f"{self.name}/error": last.measured / self.target - 1 if last else math.nan,
            f"{self.name}/at_limit": float(last is not None and last.word in ("at-low", "at-high")),
            f"{self.name}/skipped": float(self.skipped),
        }

    def state_dict(self) -> dict[str, Any]:
        """Plain data for a checkpoint. Target and limits are settings and not in it: a resume may change them."""
        return {
            "value": self.value,
            "count": self.count,
            "skipped": self.skipped,
            "changes": [list(c) for c in self.changes],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, within the limits of this one."""
        self.value = min(max(float(state["value"]), self.low), self.high)
        self.count, self.skipped = int(state["count"]), int(state["skipped"])
        self.changes = deque((Change(*change) for change in state["changes"]), maxlen=KEPT)


class _KL(Controller):
    """A coefficient that is multiplied: it can never leave 0, and its lower limit lies above."""

    name = "kl_coef"

    def __init__(self, value: float, target: float, low: float, high: float, rate: float) -> None:
        if not low > 0:
            raise BadUsage(
                f"{low} is not above 0", f"{type(self).__name__}(low=)", "give a number above 0"
            )
        if not rate > 0:
            raise BadUsage(
                f"{rate} is not above 0", f"{type(self).__name__}(rate=)", "give a number above 0"
            )
        super().__init__(value, target, low, high)
        self.rate = rate


class ExponentialKL(_KL):
    """beta * exp(rate * (KL / target - 1)), at most doubled or halved at once (seed 001 section 2.5).

    KL far above the target raises the coefficient far faster than KL far below lowers it: the error ends at -1 on that side.
    """

    def __init__(
        self, value: float, target: float, low: float = 1e-4, high: float = 10.0, rate: float = 0.1
    ) -> None:
        super().__init__(value, target, low, high, rate)

    def _next(self, error: float, steps: float) -> float:
        most = math.log(MOST)
        return self.value * math.exp(min(max(self.rate * error * steps, -most), most))


class ProportionalKL(_KL):
    """beta * (1 + rate * clip(KL / target - 1, -0.2, 0.2)): the AdaptiveKLController of TRL's PPO and of verl.

    There ``rate`` is n_steps / horizon with n_steps the number of sequences (horizon 10,000: at 256 a step, .0256). Ziegler et al.
    2019, arXiv 1909.08593, section 2.2. Theirs has no limits.
    """

    def __init__(
        self, value: float, target: float, low: float = 1e-4, high: float = 10.0, rate: float = 0.1
    ) -> None:
        super().__init__(value, target, low, high, rate)

    def _next(self, error: float, steps: float) -> float:
        factor = 1 + self.rate * min(max(error, -CLIP), CLIP) * steps
        return self.value * min(max(factor, 1 / MOST), MOST)


class EntropyTarget(Controller):
    """More entropy bonus while the entropy is below its target, less while above: a proportional and an integral part.

    With e = clip(1 - entropy / target, -1, 1): sum of rate * e over all updates, plus damping * rate * e of the last one. Sums and not
    products, so that it may begin at 0. value, low, high: of the coefficient of ``- coef * entropy`` in the loss; rate: the most it
    drifts in one update; damping: how many updates' worth of an error counts at once. Skywork-OR1 (arXiv 2505.22312) adds or takes a
    fixed step by the sign and turns the bonus off above the target; that swings, as this one does with damping 0 (docs/lab.md).
    """

    name = "entropy_coef"

    def __init__(
        self,
        value: float,
        target: float,
        low: float = 0.0,
        high: float = 0.05,
        rate: float = 1e-3,
        damping: float = 50.0,
    ) -> None:
        if not rate > 0:
            raise BadUsage(
                f"{rate} is not above 0", "EntropyTarget(rate=)", "give a number above 0"
            )
        if not damping >= 0:
            raise BadUsage(
                f"{damping} is below 0", "EntropyTarget(damping=)", "0 leaves the damping out"
            )
        super().__init__(value, target, low, high)
        self.rate, self.damping = rate, damping
        self.settled = (
            value  # the integral part, within the limits too: it does not wind up beyond them
        )

    def _next(self, error: float, steps: float) -> float:
        error = min(max(error, -1.0), 1.0)
        drifted = self.settled - self.rate * error * steps
        self.settled = min(max(drifted, self.low), self.high)
        return drifted - self.damping * self.rate * error

    def state_dict(self) -> dict[str, Any]:
        """Plain data for a checkpoint."""
        return {**super().state_dict(), "settled": self.settled}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave, within the limits of this one."""
        super().load_state_dict(state)
        self.settled = min(max(float(state["settled"]), self.low), self.high)
