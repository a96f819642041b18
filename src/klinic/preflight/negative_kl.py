"""k3 is never below 0: where your loop's is, it is not k3, or not of these two models."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed, unclear

# exp(d) - d - 1 in float32 reaches -6e-8 near 0 (docs/instrument.md); ten times that and more is no rounding.
ROUNDING = -1e-6
NEVER_BELOW = ("k2", "k3", "abs")


@check(70)
def negative_kl(given: Given) -> Result:
    """The smallest token of the KL that the loop itself computes."""
    if not given.has("kl") or not given.has("mask"):
        return missing(*(name for name in ("kl", "mask") if not given.has(name)))
    name = given.batch.kl_estimator
    kl = given.of_response("kl")[given.response]
    if name not in NEVER_BELOW:
        return unclear("signed", estimator=name)
    if np.isnan(kl).any():
        return failed("nan", tokens=int(np.isnan(kl).sum()))
    low = float(kl.min()) if len(kl) else 0.0
    below = int((kl < ROUNDING).sum())
    if below:
        return failed("below", tokens=below, low=low, estimator=name)
    return passed(low=low, estimator=name)
