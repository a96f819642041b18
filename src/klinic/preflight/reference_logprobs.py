"""The reference log-probs are the reference model's, for the same tokens."""

from __future__ import annotations

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check
from klinic.preflight._same import same


@check(50)
def reference_logprobs(given: Given) -> Result:
    """Recomputed with the reference model and compared."""
    return same(given, "reference", "reference_model")
