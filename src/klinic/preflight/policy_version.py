"""The weights that sampled are the trainer's."""

from __future__ import annotations

from typing import Any

from klinic.instrument.arrays import library
from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed


@check(110)
def policy_version(given: Given) -> Result:
    """The trainer's version beside the sampler's, of every row where each has its own."""
    mine, theirs = given.batch.policy_version, given.batch.sampler_version
    if mine is None or theirs is None:
        names = [
            n for n in ("policy_version", "sampler_version") if getattr(given.batch, n) is None
        ]
        return missing(*names)
    own = sorted(set(_all(mine)))
    other = sorted(set(_all(theirs)))
    if own == other and len(own) == 1:
        return passed(version=own[0])
    return failed("differ", mine=", ".join(own), other=", ".join(other))


def _all(value: Any) -> list[str]:
    """Every version that stands there, as text: 3, 3.0 and tensor(3) are one."""
    if hasattr(value, "tolist"):
        value = (value if library(value).__name__ == "numpy" else value.cpu()).tolist()
    found = value if isinstance(value, list | tuple) else [value]
    return [str(int(v)) if isinstance(v, float) and v == int(v) else str(v) for v in found]
