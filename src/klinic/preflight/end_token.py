"""A response that ended has its end token inside the mask: else nobody learns to stop."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed, unclear


@check(100)
def end_token(given: Given) -> Result:
    """The last token of the mask, and the one after it."""
    lacking = [name for name in ("ids", "mask") if not given.has(name)]
    lacking += ["eos|tokenizer"] * (not given.eos)
    if lacking:
        return missing(*lacking)
    mask = given.yes("mask")
    some = mask.any(1)
    last = given.width - 1 - mask[:, ::-1].argmax(1)
    rows = np.arange(given.rows)
    inside = np.isin(given.ids[rows, last], given.eos) & some
    after = np.minimum(last + 1, given.width - 1)
    follows = np.isin(given.ids[rows, after], given.eos) & (after > last)
    if given.has("ended"):
        done = (given.per_row("ended") != 0) & some
        cut = int((~done & inside).sum())
        if cut:
            return failed("said-cut", rows=cut, of=given.rows)
    elif given.real is not None:
        # A padding token may be the end token, too: only a real one counts.
        done = inside | (follows & given.real[rows, after] & some)
    else:
        return missing("ended|attention|pad")
    left_out = int((done & ~inside).sum())
    if left_out:
        return failed("outside", rows=left_out, of=int(done.sum()))
    if not done.any():
        return unclear("none-ended", of=given.rows)
    return passed(rows=int(done.sum()), of=given.rows)
