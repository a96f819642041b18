"""The ratio's denominators are the log-probs of the policy that sampled."""

from __future__ import annotations

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check
from klinic.preflight._same import same


@check(40)
def old_logprobs(given: Given) -> Result:
    """Recomputed with the model and compared: before the first update it is the policy that sampled."""
    return same(given, "old", "model")
