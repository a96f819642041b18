"""On the first update the new policy is the old one, and every ratio is 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed
from klinic.preflight._same import SAME, SAME_HALF


@check(80)
def first_ratio(given: Given) -> Result:
    """exp(logp - old) over the response tokens, before this batch has updated anything."""
    logp = given.logp
    lacking = [name for name in ("old", "mask") if not given.has(name)]
    lacking += ["logp|model"] * (logp is None)
    if lacking or logp is None:
        return missing(*lacking)
    old = given.of_response("old")
    keep = given.response & ~np.isnan(logp)
    if not keep.any() or np.isnan(old[keep]).any():
        return failed("nan")
    apart = np.clip(logp - old, -20, 20)[keep]
    off, ratio = float(np.abs(apart).mean()), float(np.exp(apart).mean())
    values: dict[str, Any] = {
        "off": off,
        "ratio": ratio,
        "low": float(np.exp(apart.min())),
        "high": float(np.exp(apart.max())),
    }
    # Whatever 16 bit explains is not an error of the code; which of the two it is, only the model can say.
    limit = SAME if given.model is not None and not _half(given) else SAME_HALF
    return passed(**values) if off <= limit else failed("off", limit=limit, **values)


def _half(given: Given) -> bool:
    from klinic.preflight._model import half

    return half(given.model)
