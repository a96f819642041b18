"""How often a word of confidence was right on labelled runs (benchmarks/calibration.py counts them)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from klinic.compiled import compiled, parsed


class HitRate(msgspec.Struct, frozen=True):
    """share: of right verdicts, each fault of the lab and each public repository counted once; over how many runs."""

    share: float
    groups: int
    runs: int


@cache
def hit_rates() -> dict[str, HitRate]:
    """The hit rate of each word: certain, likely, possible."""
    path = Path(__file__).with_suffix(".toml")
    return msgspec.convert(
        compiled("calibration", [path], lambda: parsed(path)), dict[str, HitRate]
    )
