"""Before the first update the policy is the reference, and their KL is 0."""

from __future__ import annotations

import numpy as np

from klinic.instrument.kl import kl_token_mean
from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed, unclear

# k3, nats per token. The lab: .0002 with the same weights, .072 with another reference; bf16 noise of .02 a token makes .0002. Our choice between.
AT_ZERO = 0.005


@check(60)
def kl_at_start(given: Given) -> Result:
    """k3 between the policy's log-probs and the reference's, handed over or the models' own."""
    if given.batch.step > 0:
        return unclear("not-first", step=given.batch.step)
    reference = given.of_response("reference") if given.has("reference") else given.by_reference
    logp = given.logp
    if logp is None and given.has("old"):
        logp = given.of_response("old")
    lacking = ["mask"] * (not given.has("mask"))
    lacking += ["logp|model"] * (logp is None) + ["reference|reference_model"] * (reference is None)
    if lacking or logp is None or reference is None:
        return missing(*lacking)
    keep = given.response & ~np.isnan(logp + reference)
    if not keep.any():
        return failed("nan")
    kl = float(kl_token_mean(logp, reference, keep, "k3"))
    far = float(np.abs(logp - reference)[keep].max())
    verdict = passed if kl <= AT_ZERO else failed
    return verdict("good" if kl <= AT_ZERO else "above", kl=kl, far=far, limit=AT_ZERO)
