"""Handed-over log-probs beside those that the model gives, and what would explain a difference."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, failed, missing, passed

# Mean |difference|, nats per token. Float32 engines agree to 1e-5. In 16 bit a sampler and a trainer of the same weights are some .01
# apart, and .05 is a weight sync that failed (failures/weight_sync_failure.py). Both limits are our choice between these.
SAME, SAME_HALF = 0.005, 0.03
EXPLAINS = 0.2  # of the difference may be left for a shift or a temperature to be named as its cause (our choice)


def same(given: Given, name: str, model_name: str) -> Result:
    """Whether the log-probs ``name`` are those of the model ``model_name``."""
    model = getattr(given, model_name)
    lacking = [field for field in (name, "ids", "mask") if not given.has(field)]
    if model is None:
        lacking.append(model_name)
    if given.has("ids") and given.real is None:
        lacking.append("attention|pad")
    if lacking:
        return missing(*lacking)
    from klinic.preflight._model import half

    mine = given.of_response(name)
    theirs = given.by_model if model_name == "model" else given.by_reference
    assert theirs is not None
    keep = given.response & ~np.isnan(theirs)
    if not keep.any():
        return missing("mask")
    gap = _gap(mine, theirs, keep)
    limit = SAME_HALF if half(model) else SAME
    tokens = int(keep.sum())
    if gap <= limit:
        return passed(gap=gap, tokens=tokens)
    return failed(_cause(given, mine, theirs, keep, model, gap), gap=gap, limit=limit, tokens=tokens,
                  temperature=given.batch.temperature)  # fmt: skip


def _gap(mine: np.ndarray, theirs: np.ndarray, keep: np.ndarray) -> float:
    found = np.abs(mine - theirs)[keep]
    return float(found.mean()) if len(found) else float("nan")


def _cause(
    given: Given, mine: np.ndarray, theirs: np.ndarray, keep: np.ndarray, model: object, gap: float
) -> str:
    """differ, or the known error that explains it: one column off, another temperature."""
    if not gap <= 1e30:  # NaN among them
        return "differ"
    for step in (1, -1):
        moved = np.roll(mine, step, 1)
        there = keep & ~np.isnan(moved)
        there &= np.roll(keep, step, 1)
        if there.any() and _gap(moved, theirs, there) < EXPLAINS * gap:
            return "shifted"
    if given.batch.temperature != 1:
        other = given.at_temperature(model, 1.0)
        if other is not None and _gap(mine, other, keep) < EXPLAINS * gap:
            return "temperature"
    return "differ"
