"""Before the run: is the code right? Mask, tokenizer, log-probs, signs, versions, on one batch of the loop itself.

What is wrong here cannot be tuned away, and tuning hides it (seed 001 section 9.1). One check a file, found by walking this folder: a
function of what was given, named like its file, that says passed, failed or not checked.

    from klinic.preflight import Batch, preflight

    report = preflight(Batch(ids=ids, mask=mask, attention=attention, logp=logp, old=old, ...), tokenizer=tokenizer, model=model)
    print(report)          # or report.text("zh"), report.as_dict()
    report.raise_if_failed()
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from klinic.errors import BadUsage, KlinicError, did_you_mean
from klinic.preflight._batch import Batch
from klinic.preflight._given import Given
from klinic.preflight._report import Report
from klinic.preflight._result import Check, Result, failed

__all__ = ["Batch", "Report", "Result", "checks", "preflight"]


@cache
def checks() -> dict[str, Check]:
    """Every check by name, in the order in which to mend."""
    found = []
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        one = getattr(importlib.import_module(f"{__name__}.{module.name}"), module.name, None)
        if isinstance(one, Check):
            found.append(one)
    return {one.name: one for one in sorted(found, key=lambda one: one.place)}


def preflight(
    batch: Batch,
    *,
    tokenizer: Any = None,
    reference_tokenizer: Any = None,
    model: Any = None,
    reference_model: Any = None,
    loss: Any = None,
    logits: Callable[[Any, Any], Any] | None = None,
    versions: Mapping[str, str] | None = None,
    only: Collection[str] = (),
    skip: Collection[str] = (),
) -> Report:
    """Check one batch, from before the first update, and everything that was given with it. Nothing given is changed.

    model, reference_model: torch modules, not sharded; called without padding, one row at a time. loss: a function of a model that
    returns your loss of this batch (or, for the gradient alone, the loss itself). logits: a function of model and ids (1, L) that
    returns logits (1, L, V), where calling the model does not. versions: of trainers by name, {"trl": "1.16.0"}; those imported
    without it. only, skip: names of checks. ``overfit`` needs the memory of a second model with Adam's state.
    Raises BadUsage for shapes that do not fit or an unknown name; a check that crashes has failed, and the rest runs.
    """
    known = checks()
    for name in (*only, *skip):
        if name not in known:
            raise BadUsage(f"unknown check {name!r}", "preflight",
                           did_you_mean(name, known) or f"known: {', '.join(known)}")  # fmt: skip
    given = Given(
        batch,
        tokenizer=tokenizer,
        reference_tokenizer=reference_tokenizer,
        model=model,
        reference_model=reference_model,
        loss=loss,
        logits=logits,
        versions=versions,
    )
    wanted = [c for c in known.values() if (not only or c.name in only) and c.name not in skip]
    return Report(tuple(_said(one, given) for one in wanted))


def _said(one: Check, given: Given) -> Result:
    from dataclasses import replace

    try:
        found = one.judge(given)
    except KlinicError:
        raise
    except Exception as trouble:  # the model's, the loss's or the tokenizer's own
        told = f"{type(trouble).__name__}: {trouble}".splitlines() or [""]
        found = failed("crashed", error=told[0])
    return replace(found, name=one.name)
