"""One token begins a text, not two: a chat template writes it, and encoding that text writes it again."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed, unclear


@check(130)
def doubled_bos(given: Given) -> Result:
    """The first two tokens of each row that are no padding."""
    if not given.has("ids"):
        return missing("ids")
    if given.bos is None:
        return unclear("no-bos") if given.tokenizer is not None else missing("bos|tokenizer")
    # Where the beginning token pads as well, only the attention mask tells the two apart.
    if given.bos == given.pad and not given.has("attention"):
        return missing("attention")
    real = np.ones_like(given.ids, bool) if given.real is None else given.real
    doubled = 0
    for row, keep in zip(given.ids, real, strict=True):
        doubled += bool((row[keep][:2] == given.bos).sum() == 2)
    if doubled:
        return failed("doubled", rows=doubled, of=given.rows, bos=given.bos)
    return passed(of=given.rows, bos=given.bos)
