"""The trained ids are the sampled ones: a text decoded and encoded again often has other tokens."""

from __future__ import annotations

from typing import Any

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
    for row in np.flatnonzero(mask.any(1)).tolist():
        at = np.flatnonzero(mask[row])
        ids = given.ids[row, at[0] : at[-1] + 1].tolist()
        again = _again(given.tokenizer, ids)
        if again is None:
            continue
        compared += 1
        # Some tokenizers read a text's beginning in another way, so that only the whole row comes back.
        if again != ids and not (given.real is not None and _comes_back(given, row)):
            drifted += 1
            example = example or _where(ids, again)
    if not compared:
        return missing("sampled")
    if drifted:
        return failed("drift", rows=drifted, of=compared, example=example)
    return passed(of=compared)


def _again(tokenizer: Any, ids: list[int]) -> list[int] | None:
    """The ids of the ids' text; None where they end within a character."""
    text = tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return None if text.endswith(CUT) else list(tokenizer.encode(text, add_special_tokens=False))


def _comes_back(given: Given, row: int) -> bool:
    assert given.real is not None
    ids = given.ids[row, given.real[row]].tolist()
    return bool(_again(given.tokenizer, ids) == ids)


def _where(ids: list[int], again: list[int]) -> str:
    """The first place at which they part."""
    at = next((i for i, (a, b) in enumerate(zip(ids, again, strict=False)) if a != b), 0)
    return f"{ids[at : at + 3]} -> {again[at : at + 3]}"
