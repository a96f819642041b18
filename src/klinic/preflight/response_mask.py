"""The response mask holds the whole response, and nothing of the prompt or the padding."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed


@check(10)
def response_mask(given: Given) -> Result:
    """Against the prompt and the padding, whichever of them is known."""
    if not given.has("mask"):
        return missing("mask")
    raw = given.columns("mask")
    values = np.unique(raw[~np.isnan(raw)])
    if not np.isin(values, (0, 1)).all():
        return failed("not-binary", found=float(values[~np.isin(values, (0, 1))][0]))
    mask = given.yes("mask")
    empty = int((~mask.any(1)).sum())
    if empty:
        return failed("empty", rows=empty, of=given.rows)
    prompt, real = given.prompt, given.real
    if prompt is None and real is None:
        return missing("prompt_lengths|prompt_mask", "attention|pad")
    if prompt is not None and (inside := mask & prompt).any():
        return failed(
            "prompt", rows=int(inside.any(1).sum()), of=given.rows, tokens=int(inside.sum())
        )
    if real is not None and (inside := mask & ~real).any():
        return failed(
            "padding", rows=int(inside.any(1).sum()), of=given.rows, tokens=int(inside.sum())
        )
    if prompt is None or real is None:
        without = "padding" if real is None else "prompt"
        return passed(f"without-{without}", tokens=int(mask.sum()), of=given.rows)
    answer = real & ~prompt
    # Only the two ends: the tokens of a tool lie between, and are left out on purpose.
    late = _first(answer) < _first(mask)
    if late.any():
        return failed("late", rows=int(late.sum()), of=given.rows)
    last = given.width - 1 - _first(answer[:, ::-1])
    left_out = last - (given.width - 1 - _first(mask[:, ::-1]))
    early = left_out > 0
    if given.eos and given.has("ids"):  # a lone end token is a check of its own
        early &= ~((left_out == 1) & np.isin(given.ids[np.arange(given.rows), last], given.eos))
    else:
        early = left_out > 1
    if early.any():
        return failed("early", rows=int(early.sum()), of=given.rows)
    return passed(tokens=int(mask.sum()), of=given.rows)


def _first(found: np.ndarray) -> np.ndarray:
    """The first column of each row that is true."""
    first: np.ndarray = found.argmax(1)
    return first
