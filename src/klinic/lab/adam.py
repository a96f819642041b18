"""Adam, and the global gradient norm."""

from __future__ import annotations

import numpy as np

from klinic.lab.network import Weights


class Adam:
    """Adam without weight decay. ``first`` and ``second`` moments and ``count`` are what a checkpoint holds."""

    def __init__(self, weights: Weights, decay: tuple[float, float] = (0.9, 0.99)) -> None:
        self.first = {name: np.zeros_like(w) for name, w in weights.items()}
        self.second = {name: np.zeros_like(w) for name, w in weights.items()}
        self.count = 0
        self.decay = decay

    def step(self, weights: Weights, gradient: Weights, lr: float) -> None:
        """Move the weights in place."""
        self.count += 1
        a, b = self.decay
        for name, g in gradient.items():
            self.first[name] += (1 - a) * (g - self.first[name])
            self.second[name] += (1 - b) * (g**2 - self.second[name])
            first = self.first[name] / (1 - a**self.count)
            second = self.second[name] / (1 - b**self.count)
            weights[name] -= (lr * first / (np.sqrt(second) + 1e-8)).astype(weights[name].dtype)


def norm(gradient: Weights) -> float:
    """The global L2 norm."""
    return float(np.sqrt(sum(float((g.astype(np.float64) ** 2).sum()) for g in gradient.values())))


def clipped(gradient: Weights, limit: float) -> tuple[Weights, float]:
    """The gradient scaled down to ``limit`` (0: not at all), and its norm before."""
    size = norm(gradient)
    if limit and size > limit:
        gradient = {name: g * (limit / size) for name, g in gradient.items()}
    return gradient, size


def through_half_precision(gradient: Weights, scale: float) -> Weights:
    """The gradient as float16 training with a fixed loss scale sees it: too large an entry becomes infinite."""
    with np.errstate(over="ignore"):
        return {
            name: (g * scale).astype(np.float16).astype(g.dtype) / scale
            for name, g in gradient.items()
        }
