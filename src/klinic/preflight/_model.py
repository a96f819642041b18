"""What a model says of a batch, row by row without padding, so that nothing hangs on how padding is treated. Needs torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from klinic.instrument.logits import logprobs_and_entropy

Array = Any
Logits = Callable[[Any, Any], Any] | None


def log_probs(model: Any, ids: Array, real: Array, most: int, heat: float, logits: Logits) -> Array:
    """Log-probs (B, L), nats, of the first ``most`` rows; NaN elsewhere. The model is left as it was, dropout off meanwhile."""
    found = np.full(ids.shape, np.nan)
    with still(model), torch.no_grad():
        for i in range(min(most, len(ids))):
            at = np.flatnonzero(real[i])
            if len(at) > 1:
                row = row_log_probs(model, ids[i, at], heat, logits)
                found[i, at[1:]] = row.double().cpu().numpy()
    return found


def row_log_probs(model: Any, ids: Array, heat: float, logits: Logits) -> Any:
    """Log-probs of all but the first token of one row (L - 1,), with their gradient."""
    tokens = torch.as_tensor(np.ascontiguousarray(ids), dtype=torch.long, device=device_of(model))
    scores = (logits or logits_of)(model, tokens[None])
    return logprobs_and_entropy(scores[:, :-1], tokens[None, 1:], temperature=heat)[0][0]


def logits_of(model: Any, ids: Any) -> Any:
    """Logits (1, L, V) of a transformers model, or of a module that takes ids and returns logits."""
    names = inspect.signature(model.forward if hasattr(model, "forward") else model).parameters
    found = model(input_ids=ids) if "input_ids" in names else model(ids)
    if hasattr(found, "logits"):
        return found.logits
    return found[0] if isinstance(found, tuple) else found


def device_of(model: Any) -> Any:
    """Where the model's first parameter is."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def half(model: Any) -> bool:
    """Whether it computes in 16 bit."""
    return any(p.dtype in (torch.bfloat16, torch.float16) for p in model.parameters())


def trainable(model: Any) -> dict[str, Any]:
    """Parameters with ``requires_grad``, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


@contextmanager
def same_chance(model: Any) -> Iterator[None]:
    """Random numbers go on afterwards as if nothing had been drawn."""
    device = device_of(model)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


@contextmanager
def still(model: Any) -> Iterator[None]:
    """Dropout off; every module's mode and the random numbers are put back afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with same_chance(model):
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def surprise(model: Any, given: Any, most: int) -> Any:
    """Mean negative log-prob of the response tokens of the first ``most`` rows, nats per token, with its gradient."""
    parts, count = [], 0
    for i in range(min(most, given.rows)):
        at = np.flatnonzero(given.real[i])
        wanted = given.response[i, at[1:]] if len(at) > 1 else np.zeros(0, bool)
        if wanted.any():
            row = row_log_probs(model, given.ids[i, at], given.batch.temperature, given.logits)
            parts.append(-row[torch.as_tensor(wanted, device=row.device)].sum())
            count += int(wanted.sum())
    return sum(parts) / max(count, 1)
