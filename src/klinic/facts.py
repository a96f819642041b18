"""What a failure may look at: described curves, configuration and events of one run, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from klinic.curves.shape import Shape
from klinic.memory import Crash, last_words
from klinic.run import Event, Metric, Run
from klinic.vitals import ROLES, players

FEW = 10  # so few points allow from-start rules only (DESIGN.md 4.5)
SOME = 40  # fewer points than this leave a verdict "possible", unless the change is unmistakable


class NotLogged(Exception):
    """A card needs roles that the run does not log."""

    def __init__(self, *roles: str) -> None:
        super().__init__(", ".join(roles))
        self.roles = roles


class Facts:
    """Described curves by role; every description is made once, when first asked for."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._shapes: dict[str, Shape | None] = {}
        self._metrics: dict[str, Metric] = {}

    def shape(self, role: str) -> Shape | None:
        """The curve that plays ``role``, described; None where none is logged or it holds no finite value."""
        if role not in self._shapes:
            self._shapes[role] = None
            for name in players(role, self.run.curves):
                curve = self.run.curves[name]
                finite = np.isfinite(curve.values)
                if finite.any():
                    self._shapes[role] = Shape(
                        ROLES[role], curve.steps[finite], curve.values[finite]
                    )
                    self._metrics[role] = curve.metric
                    break
        return self._shapes[role]

    def need(self, *roles: str) -> list[Shape]:
        """The curves of several roles. Raises NotLogged naming those the run lacks."""
        found = [self.shape(role) for role in roles]
        missing = [role for role, shape in zip(roles, found, strict=True) if shape is None]
        if missing:
            raise NotLogged(*missing)
        return [shape for shape in found if shape is not None]

    def level(self, role: str) -> Shape | None:
        """The curve of a role where an absolute threshold may judge it; None where its level depends on what is unknown.

        A sum of unknown length, a mean over padding: what such a curve does over time is still read from ``shape``.
        """
        shape, metric = self.shape(role), self._metrics.get(role)
        return shape if metric is not None and metric.comparable else None

    def need_level(self, *roles: str) -> list[Shape]:
        """As ``need``, of curves whose level is comparable. Raises NotLogged naming the others."""
        self.need(*roles)
        found = [self.level(role) for role in roles]
        unsure = [role for role, shape in zip(roles, found, strict=True) if shape is None]
        if unsure:
            raise NotLogged(*unsure)
        return [shape for shape in found if shape is not None]

    def metric(self, role: str) -> Metric | None:
        """How the curve of a role was measured."""
        self.shape(role)
        return self._metrics.get(role)

    def named(self, prefix: str) -> dict[str, Shape]:
        """All curves whose canonical name starts with ``prefix``, described on the scale of a share."""
        found: dict[str, Shape] = {}
        for name, curve in self.run.curves.items():
            finite = np.isfinite(curve.values)
            if name.startswith(prefix) and finite.any():
                found[name] = Shape(ROLES["acc"], curve.steps[finite], curve.values[finite])
        return found

    @cached_property
    def n(self) -> int:
        """Number of logged points of the longest of the vital curves."""
        roles = ("reward", "acc", "entropy", "kl", "len", "trunc", "grad_norm", "clip_frac", "loss")
        return max(
            (shape.n for role in roles if (shape := self.shape(role)) is not None),
            default=self.run.logged,
        )

    @property
    def few(self) -> bool:
        """Too few points for anything but from-start rules."""
        return self.n <= FEW

    @cached_property
    def success(self) -> Shape | None:
        """Share of right answers: acc where logged, else a reward that stays between 0 and 1."""
        acc = self.shape("acc")
        if acc is not None and (acc.n > 3 or self.few):
            return acc
        reward = self.shape("reward")
        if (
            reward is not None
            and reward.values.min() >= 0
            and 0 < reward.values.max() <= 1.0 + 1e-6
        ):
            return Shape(ROLES["acc"], reward.steps, reward.values)
        return None

    @property
    def success_level(self) -> Shape | None:
        """``success`` where an absolute threshold may judge it."""
        return self.success if self.success_role == "reward" else self.level("acc")

    @cached_property
    def success_role(self) -> str:
        """Which role ``success`` was read from."""
        acc = self.shape("acc")
        return "acc" if self.success is acc and acc is not None else "reward"

    def events(self, kind: str) -> list[Event]:
        """Events of one kind."""
        return [event for event in self.run.events if event.kind == kind]

    @cached_property
    def crash(self) -> Crash | None:
        """How the run died, as its tracebacks and last words say; None where they say nothing."""
        return last_words(self.run.events)

    def setting(self, knob: str) -> Any:
        """The run's own value of a knob, None where unknown."""
        return self.run.setting(knob)

    def number(self, knob: str) -> float | None:
        """A numeric setting, None where unknown."""
        value = self.run.setting(knob)
        return (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        )

    @property
    def absent(self) -> Mapping[str, Any]:
        """Canonical metrics whose constant zero means "not computed", and why."""
        return self.run.absent

    def is_absent(self, role: str) -> bool:
        """Whether a role is logged as a constant zero that means nothing."""
        return bool(players(role, self.run.absent))
