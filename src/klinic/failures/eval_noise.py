"""An evaluation jumps about and goes nowhere: few questions, not a change of the policy."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Evidence, Verdict, benign, failure, ruled_out, seen
from klinic.failures._trend import evaluations, scatter, trend

SWING = 0.10  # a fall between two neighbouring evaluations: what eval-regression calls a loss where it stays
MOVED, SURE = 0.07, 2.0  # a trend of that size and so many standard errors is one, and no noise
POINTS = 6  # evaluations below which a trend and a swing look alike (our choice)


@failure(family="benign", stage="benign")
def eval_noise(facts: Facts) -> Verdict:
    """Need: one evaluation falls by 0.10 between neighbours, and the run of them has no trend."""
    evals = evaluations(facts, POINTS)
    if not evals:
        facts.need("heldout")
        return ruled_out(seen(facts, "heldout", "against", "calm"))
    found: tuple[float, str] | None = None
    for task, shape in evals.items():
        went = trend(shape)
        fall = float(-np.diff(shape.values).min())
        still = abs(went.change) < MOVED and abs(went.z) < SURE
        if still and fall >= SWING and (found is None or fall > found[0]):
            found = (fall, task)
    if found is None:
        return ruled_out(seen(facts, "heldout", "against", "calm", next(iter(evals.values()))))
    fall, task = found
    shape = evals[task]
    sigma, p = max(scatter(shape), 1e-6), float(np.clip(np.mean(shape.values), 0.05, 0.95))
    values = {"task": task, "fall": fall, "noise": sigma, "samples": p * (1 - p) / sigma**2}
    return benign(
        None,
        Evidence("acc", "for", "swings", "noisy", shape.before, shape.after, None, values),
    )
