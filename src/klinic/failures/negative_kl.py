"""The KL estimate is below zero where it cannot be."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen

K3_BELOW = -1e-5  # k3 is never negative on any token; a little slack for printing and bf16
NOISE_Z = 6.0  # k1 is negative on 48 % of tokens at KL 0.005 (science.md 1.3): only a level beyond the noise counts
FAR_BELOW = -1.0  # nats: no noise and no small difference of weights makes this (TRL's warning; labelled reports -1.5 to -233)
LEVEL = -0.01  # nats/token
RATIO_OFF = 0.97  # geometric ratio below which a negative k1 means stale samples, not a wrong reference (lab.md 6.3)


@failure(
    family="implementation",
    stage="implementation",
    treatments=(Treatment("fix-code", "reference"), Treatment("fix-code", "mask")),
    explains="no-learning",
)
def negative_kl(facts: Facts) -> Verdict:
    """Need: k3 below 0 at all, or another estimator's level clearly below 0. Veto: within the estimator's noise."""
    said = facts.events("negative-kl")
    if said and facts.shape("kl") is None:
        return present(
            "act",
            early(facts),
            seen(facts, "kl", "for", "said-negative", value=said[0].lines[0]),
            sure=True,
        )
    (kl,) = facts.need("kl")
    metric = facts.metric("kl")
    # RLOO writes a signed k1 under the same key as GRPO's k3.
    k3 = metric is not None and "/k3/" in metric.name and "rloo" not in facts.run.notes
    geo = facts.shape("ratio_geo")
    if geo is not None and geo.after < RATIO_OFF:
        return ruled_out(seen(facts, "ratio_geo", "against", "off-policy"))
    known = facts.level("kl") is not None
    limit = LEVEL if known else 0.0
    below = kl.values < (K3_BELOW if k3 else limit)
    if k3:
        hit = below.mean() > 0.02 and below.any()
    else:
        error = 1.25 * kl.noise / np.sqrt(max(1, kl.window))
        hit = bool(below.mean() > 0.5 and kl.after < limit and kl.after < -NOISE_Z * error)
    if not hit:
        return ruled_out(seen(facts, "kl", "against", "not-negative"))
    first = int(kl.steps[np.flatnonzero(below)[0]])
    return present(
        "stop" if k3 else "act",
        Onset(first, first, first),
        seen(facts, "kl", "for", "negative"),
        seen(facts, "kl", "for", "far-below") if known and kl.after < FAR_BELOW else None,
        sure=k3,
    )
