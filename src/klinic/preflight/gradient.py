"""One backward pass reaches every parameter that is to be trained."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed

GRADIENT_ROWS = 2  # our choice: two rows reach what any row reaches, experts apart
NUDGE = 1e-3  # of a parameter's gradient direction, in its own units: enough to leave a point where others have no gradient


@check(140)
def gradient(given: Given) -> Result:
    """Of the given loss, or of the negative log-prob of the response; nothing of the model is changed."""
    if given.model is None:
        return missing("model")
    if given.loss is None and (lacking := _lacking(given)):
        return missing(*lacking)
    from klinic.preflight._model import trainable

    some = trainable(given.model)
    if not some:
        return failed("frozen")
    found = _gradients(given.model, given)
    if isinstance(found, str):
        return failed(found)
    bad = [name for name, grad in found.items() if grad is not None and not grad.isfinite().all()]
    if bad:
        return failed("not-finite", count=len(bad), of=len(some), first=bad[0])
    lost = [name for name, grad in found.items() if grad is None or not grad.any()]
    if lost and len(lost) < len(some) and (given.loss is None or callable(given.loss)):
        lost = _again(given, found, lost)
    if lost:
        none = sum(found[name] is None for name in lost)
        return failed("lost", count=len(lost), of=len(some), first=lost[0], none=none)
    return passed("good" if given.loss is not None else "likelihood", of=len(some))


def _lacking(given: Given) -> list[str]:
    lacking = [name for name in ("ids", "mask") if not given.has(name)]
    return lacking + ["attention|pad"] * (given.has("ids") and given.real is None)


def _gradients(model: Any, given: Given) -> dict[str, Any] | str:
    """The gradient of each trainable parameter, None where the loss does not hang on it; a word where there is none at all."""
    import torch

    from klinic.preflight._model import same_chance, still, surprise, trainable

    some = trainable(model)
    if given.loss is None:
        with still(model):
            value = surprise(model, given, GRADIENT_ROWS)
    else:
        with same_chance(model):
            value = given.loss(model) if callable(given.loss) else given.loss
    if not isinstance(value, torch.Tensor) or value.grad_fn is None:
        return "detached"
    found = torch.autograd.grad(
        value, list(some.values()), allow_unused=True, retain_graph=not callable(given.loss)
    )
    return dict(zip(some, found, strict=True))


def _again(given: Given, found: Mapping[str, Any], lost: list[str]) -> list[str]:
    """Those still without a gradient after the others have moved: LoRA's first matrix has none while its second is 0."""
    import torch

    from klinic.preflight._model import trainable

    moved = copy.deepcopy(given.model)
    with torch.no_grad():
        for name, parameter in trainable(moved).items():
            step = found[name]
            if step is not None and step.any():
                parameter -= NUDGE * step / step.abs().max()
    later = _gradients(moved, given)
    if isinstance(later, str):
        return lost
    return [name for name in lost if later[name] is None or not later[name].any()]
