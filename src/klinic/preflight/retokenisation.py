"""The trained ids are the sampled ones: a text decoded and encoded again often has other tokens."""

from __future__ import annotations

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed

CUT = "�"  # a response cut off within a character cannot come back


@check(30)
def retokenisation(given: Given) -> Result:
    """Against the sampler's ids where they are known, else by decoding and encoding each response."""
    if not given.has("ids") or not given.has("mask"):
        return missing(*(name for name in ("ids", "mask") if not given.has(name)))
    mask = given.response
    if given.has("sampled"):
        drawn = given.of_response("sampled")
        differ = (drawn != given.ids) & mask
        if differ.any():
            return failed(
                "not-sampled",
                rows=int(differ.any(1).sum()),
                of=given.rows,
                tokens=int(differ.sum()),
            )
        return passed("sampled", tokens=int(mask.sum()))
    if given.tokenizer is None:
        return missing("sampled|tokenizer")
    drifted, compared, example = 0, 0, ""
    for row, keep in zip(given.ids, mask, strict=True):
        at = np.flatnonzero(keep)
        if not len(at):
            continue
        ids = row[at[0] : at[-1] + 1].tolist()
        text = given.tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        if text.endswith(CUT):
            continue
        compared += 1
        again = list(given.tokenizer.encode(text, add_special_tokens=False))
        if again != ids:
            drifted += 1
            example = example or _where(given, ids, again)
    if not compared:
        return missing("sampled")
    if drifted:
        return failed("drift", rows=drifted, of=compared, example=example)
    return passed(of=compared)


def _where(given: Given, ids: list[int], again: list[int]) -> str:
    """The first place at which they part."""
    at = next((i for i, (a, b) in enumerate(zip(ids, again, strict=False)) if a != b), 0)
    return f"{ids[at : at + 3]} -> {again[at : at + 3]}"
