"""The lab's controllers: which settings ask for them, and how they are kept through a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from klinic.instrument.control import Controller, EntropyTarget, ExponentialKL, ProportionalKL
from klinic.lab.settings import Settings

KL = {"exponential": ExponentialKL, "proportional": ProportionalKL}


class Coefficients:
    """The KL and entropy coefficients in force: the settings' own, or those of controllers."""

    def __init__(self, settings: Settings) -> None:
        self._made(settings)

    def _made(self, s: Settings) -> None:
        self.settings = s
        self.kl: Controller | None = None
        self.entropy: Controller | None = None
        if s.kl_control in KL:
            self.kl = KL[s.kl_control](s.beta, s.kl_target, s.beta_low, s.beta_high, s.kl_rate)
        if s.entropy_target:
            self.entropy = EntropyTarget(
                s.entropy_coef,
                s.entropy_target,
                s.entropy_coef_low,
                s.entropy_coef_high,
                s.entropy_rate,
                s.entropy_damping,
            )

    def under(self, settings: Settings) -> None:
        """Go on with other settings (a fault was switched); the controllers keep what they have reached."""
        kept = self.state()
        self._made(settings)
        self.restore(kept)

    @property
    def beta(self) -> float:
        """Of the KL term."""
        return self.settings.beta if self.kl is None else self.kl.value

    @property
    def entropy_coef(self) -> float:
        """Of the entropy bonus."""
        return self.settings.entropy_coef if self.entropy is None else self.entropy.value

    def update(self, kl: float, entropy: float) -> dict[str, float]:
        """After a step: what it measured (nats per token). What to log of the step, nothing where all is fixed."""
        row = {}
        for controller, measured in ((self.kl, kl), (self.entropy, entropy)):
            if controller is not None:
                row[controller.name] = controller.value  # the one this step used
                controller.update(measured)
                row |= {k: v for k, v in controller.metrics().items() if k != controller.name}
        return row

    def state(self) -> dict[str, Any]:
        """Plain data; empty where all is fixed."""
        found = {"kl": self.kl, "entropy": self.entropy}
        return {name: c.state_dict() for name, c in found.items() if c is not None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state`` gave, as far as there still is a controller."""
        for name, controller in (("kl", self.kl), ("entropy", self.entropy)):
            if controller is not None and name in state:
                controller.load_state_dict(state[name])
