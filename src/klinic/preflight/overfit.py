"""A few updates on one small batch make its loss fall; a copy of the model learns, the model itself does not change."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed
from klinic.preflight.gradient import _lacking

UPDATES = 20  # our choice
RATES = (
    1e-4,
    1e-3,
)  # Adam's, one after the other: the first suits large models, the second small ones (our choice)
FALL = 0.1  # of the loss before (our choice: a batch learnt by heart loses most of it)
LEAST = 0.01  # of a policy-gradient loss, which begins at 0 (our choice)
OVERFIT_ROWS = 4  # our choice


@check(150)
def overfit(given: Given) -> Result:
    """Of the given loss, or the negative log-prob of the response; with advantages, whether those tokens gain that should."""
    if given.model is None:
        return missing("model")
    if given.loss is not None and not callable(given.loss):
        return missing("loss=lambda model: ...")
    if given.loss is None and (lacking := _lacking(given)):
        return missing(*lacking)
    from klinic.preflight._model import same_chance, trainable

    if not trainable(given.model):
        return failed("frozen")
    before = after = math.nan
    for rate in RATES:
        with same_chance(given.model):
            learner, before, after = _learn(given, rate)
        if not math.isfinite(before):
            return failed("not-finite", before=before)
        if after < before - max(FALL * abs(before), LEAST):
            gain = _gain(given, learner)
            if gain is not None and gain < 0:
                return failed("wrong-way", before=before, after=after, gain=gain, updates=UPDATES)
            return passed(
                "good" if gain is None else "gains",
                before=before,
                after=after,
                updates=UPDATES,
                rate=rate,
            )
    return failed("still", before=before, after=after, updates=UPDATES, rate=RATES[-1])


def _learn(given: Given, rate: float) -> tuple[Any, float, float]:
    """A copy of the model after the updates, and the loss before and after."""
    import torch

    from klinic.preflight._model import still, surprise, trainable

    learner = copy.deepcopy(given.model)
    optimizer = torch.optim.Adam(trainable(learner).values(), lr=rate)

    def loss() -> Any:
        if given.loss is not None:
            return given.loss(learner)
        with still(learner):
            return surprise(learner, given, OVERFIT_ROWS)

    before = float(loss().detach())
    for _ in range(UPDATES):
        value = loss()
        if value.grad_fn is None or not value.isfinite():
            break
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return learner, before, float(loss().detach())


def _gain(given: Given, learner: Any) -> float | None:
    """Mean advantage times gain in log-prob of the response tokens; None without a loss, advantages or log-probs."""
    if (
        given.loss is None
        or not given.has("advantages")
        or not given.has("mask")
        or given.by_model is None
    ):
        return None
    from klinic.preflight._given import RECOMPUTED_ROWS
    from klinic.preflight._model import log_probs

    raw = given.per_row("advantages").astype(float)
    advantages = np.full((given.rows, given.width), np.nan)
    if raw.ndim == 1:
        advantages[:] = raw[:, None]
    else:
        advantages[:, given.width - raw.shape[1] :] = raw
    now = log_probs(
        learner, given.ids, given.real, RECOMPUTED_ROWS, given.batch.temperature, given.logits
    )
    parts = advantages * (now - given.by_model)
    keep = given.response & ~np.isnan(parts)
    return float(parts[keep].mean()) if keep.any() and np.any(advantages[keep]) else None
