"""A KL estimate below 0 that is only the noise of its estimator, or of its printing."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Verdict, benign, early, failure, ruled_out, seen

NOISE = 3.0  # standard errors within which a negative level is noise (failure_modes.json)
SMALL = 1e-3  # nats/token: in a log too short for an error of its own, a mean this near 0 is 0 (lab: k1 at KL 0.005 dips to -0.02)
OFTEN = 0.1  # share of rows below 0 from which a reader of the curve may be alarmed (our choice); in a short log one is enough
OLD = 4.0  # versions; on samples this old k1 is off by more than noise (staleness)
ROUNDING = 1e-5  # k3 and k2 are never negative; less is bf16 or printing (negative-kl's limit)


@failure(family="benign", stage="benign")
def estimator_noise(facts: Facts) -> Verdict:
    """Need: some KL values below 0, and a level that noise explains. Veto: the level is surely below 0."""
    shape, role = facts.level("kl_k1"), "kl_k1"
    if shape is None or not np.any(shape.values < 0):
        shape, role = facts.need_level("kl")[0], "kl"
    metric = facts.metric(role)
    name = metric.name if metric is not None else ""
    below = shape.values < 0
    if not below.any():
        return ruled_out(seen(facts, role, "against", "never-below", shape))
    lag = facts.shape("staleness")
    if lag is not None and lag.highest >= OLD:
        return ruled_out(seen(facts, "staleness", "against", "samples-old"))
    share = float(below.mean())
    if share < OFTEN and not facts.few:
        return ruled_out(seen(facts, role, "against", "seldom-below", shape))
    if "/k3/" in name or "/k2/" in name:
        if float(shape.values.min()) < -ROUNDING:
            return ruled_out(seen(facts, role, "against", "really-below", shape))
        return benign(early(facts), seen(facts, role, "for", "rounding", shape, share=share))
    level = float(np.mean(shape.values))
    late = float(np.mean(shape.values[-shape.window :]))
    error = shape.noise / np.sqrt(max(1, shape.n))
    tail = shape.noise / np.sqrt(max(1, shape.window))
    if facts.few:
        noise = level > -SMALL
    else:
        noise = level > -NOISE * error and late > -NOISE * tail
    if not noise:
        return ruled_out(seen(facts, role, "against", "really-below", shape))
    return benign(early(facts), seen(facts, role, "for", "noise", shape, share=share))
