"""Do the controllers hold their targets? python benchmarks/lab_control.py [WORD]   (two processes, four minutes; WORD: only such arms)

300 steps of the healthy lab on seeds 1 to 3, each with a base model of its own. Printed for each seed: the mean of the last 100 steps, the
smallest and the largest 20-step mean among them, and the smallest and largest coefficient of all 300 steps.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

SEEDS = (1, 2, 3)
STEPS, LAST, PART = 300, 100, 20
KL = {"kl_control": "exponential"}
SLOW = {"kl_control": "proportional", "kl_rate": 0.3}
ARMS: dict[str, dict[str, Any]] = {
    "fixed: beta 0.05": {},
    "exponential, KL 0.05": {**KL, "kl_target": 0.05},
    "exponential, KL 0.1": {**KL, "kl_target": 0.1},
    "proportional, KL 0.05": {**SLOW, "kl_target": 0.05},
    "exponential, KL 0.0005 (below reach)": {**KL, "kl_target": 0.0005},
    "exponential, KL 20 (above reach)": {**KL, "kl_target": 20.0},
    "entropy 1.6": {"entropy_target": 1.6},
    "entropy 1.6, no damping": {"entropy_target": 1.6, "entropy_damping": 0.0},
    "entropy 1.5 and KL 0.05": {**KL, "kl_target": 0.05, "entropy_target": 1.5},
    "entropy 3.5, bonus at most 0.01 (above reach)": {"entropy_target": 3.5, "entropy_coef_high": 0.01},
    "entropy 0.5, bonus at least 0 (below reach)": {"entropy_target": 0.5},
}  # fmt: skip


def one(arm: str, seed: int) -> tuple[str, int, list[dict[str, Any]]]:
    """The rows of one run."""
    from threadpoolctl import threadpool_limits

    from klinic.lab.settings import Settings, changed
    from klinic.lab.trainer import Trainer

    with threadpool_limits(limits=1):
        settings = changed(Settings(), {"eval_every": 10_000, "base": seed - 1, **ARMS[arm]})
        trainer = Trainer(settings, seed)
        return arm, seed, [trainer.train_step()[0] for _ in range(STEPS)]


def told(rows: list[dict[str, Any]], name: str) -> str:
    """Mean of the last steps, and between which the means of their parts lie."""
    last = np.array([row[name] for row in rows[-LAST:]])
    parts = last.reshape(-1, PART).mean(1)
    return f"{name} {last.mean():.3g} ({parts.min():.3g} to {parts.max():.3g})"


def main() -> None:
    arms = [arm for arm in ARMS if all(word in arm for word in sys.argv[1:])]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(one, *zip(*[(a, s) for a in arms for s in SEEDS], strict=True)))
    for arm in arms:
        print(arm)
        for name, seed, rows in found:
            if name != arm:
                continue
            acc = np.mean([row["acc"] for row in rows[-LAST:]])
            coefficients = []
            for key in ("kl_coef", "entropy_coef"):
                if key in rows[0]:
                    values = [row[key] for row in rows]
                    coefficients.append(
                        f"{key} {min(values):.3g} to {max(values):.3g}, last {values[-1]:.3g}"
                    )
            print(
                f"  seed {seed}: {told(rows, 'kl')}  {told(rows, 'entropy')}  acc {acc:.2f}  {'  '.join(coefficients)}"
            )


if __name__ == "__main__":
    main()
