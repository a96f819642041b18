"""The base models: supervised warm-up on a sloppy teacher. They are shipped; ``klinic lab warmup`` makes them again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from klinic.lab import adam, losses
from klinic.lab.network import Weights, backward, forward, logits_of, new_policy
from klinic.lab.tasks import PROMPT_LENGTH, SHARES, TASKS, Teacher, draw
from klinic.lab.words import PAD

STEPS = 5000
BATCH = 64
CLEAN = 0.65  # the first part is taught without mistakes, so that the chains are learnt at all
PLACE = Path(__file__).parent / "bases"


@dataclass(frozen=True, slots=True)
class Base:
    """One base model. hidden: GRU units; seed: of weights and demonstrations."""

    hidden: int
    seed: int
    teacher: Teacher


BASES = (
    Base(64, 1000, Teacher()),
    Base(64, 1001, Teacher(styles=(0.30, 0.30, 0.40), slip=1.5)),  # wordier, sloppier in format
    Base(80, 1002, Teacher(styles=(0.45, 0.40, 0.15), short_error=0.20)),  # terser, a larger model
)


@cache
def load(index: int) -> Weights:
    """A shipped base model's weights, read once; copy before changing them."""
    with np.load(PLACE / f"base-{index}.npz") as saved:
        return {name: saved[name] for name in saved.files}


def warm_up(
    base: Base, steps: int = STEPS, told: Callable[[int, float], None] | None = None
) -> Weights:
    """Train a base model from nothing. told: called with the step and its loss."""
    random = Random(base.seed)
    policy = new_policy(np.random.default_rng(base.seed), base.hidden)
    optimizer = adam.Adam(policy, (0.9, 0.98))
    for step in range(steps):
        noise = 1.0 if step > CLEAN * steps else 0.0
        rows = []
        for _ in range(BATCH):
            task = random.choices(TASKS, [SHARES[t] for t in TASKS])[0]
            problem = draw(random, task, random.randrange(2, 6))
            rows.append([*problem.tokens, *base.teacher.demonstrate(random, problem, noise)])
        longest = max(map(len, rows))
        tokens = np.array([row + [PAD] * (longest - len(row)) for row in rows])
        done = forward(policy, tokens[:, :-1])
        target = tokens[:, PROMPT_LENGTH:].T
        mask = (target != PAD).astype(np.float32)
        logits = logits_of(policy, done.states[PROMPT_LENGTH:])
        loss, d_logits = losses.supervised_loss(logits, target, mask / mask.sum())
        gradient, _ = adam.clipped(backward(policy, done, PROMPT_LENGTH - 1, d_logits), 1.0)
        optimizer.step(policy, gradient, 6e-3 * min(1, step / 50) * (1 - step / steps) + 1e-4)
        if told is not None:
            told(step, loss)
    return policy
