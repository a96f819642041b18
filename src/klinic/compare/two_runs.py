"""Two runs side by side: what was set differently, which curve parts first, and both diagnoses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from klinic.compare.pairs import Pair, Unlike, pairs
from klinic.compare.parting import ENOUGH, Parting, part
from klinic.compare.settings import Changed, differences
from klinic.diagnosis import Diagnosis
from klinic.run import Run

SPARSE = 0.5  # of the points of the longest curve: an evaluation every ten steps cannot say what came first


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs on their common steps.

    changed: settings with two values, None where a run states no configuration. partings: curves that part,
    earliest first, and after them those of sparse curves. together: metrics that do not. short: metrics with too few common points. unlike: roles
    measured in two ways. same_until: last step up to which every curve is bitwise the same, None where none is.
    """

    a: Diagnosis
    b: Diagnosis
    changed: tuple[Changed, ...] | None
    first: int | None
    last: int | None
    common: int
    partings: tuple[Parting, ...]
    together: tuple[str, ...]
    short: tuple[str, ...]
    unlike: tuple[Unlike, ...]
    same_until: int | None
    identical: bool


def compare(
    a: str | Path | Run,
    b: str | Path | Run,
    *,
    trainer: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two runs. Raises UnreadableInput where a path holds none or several."""
    from klinic.diagnose import judge
    from klinic.read import read

    options: dict[str, Any] = {"trainer": trainer, "mapping": mapping}
    one, other = (run if isinstance(run, Run) else read(run, **options) for run in (a, b))
    found, unlike = pairs(one, other)
    partings = [parting for pair in found if (parting := part(pair)) is not None]
    parted = {parting.metric for parting in partings}
    longest = max((len(pair.steps) for pair in found), default=0)
    sparse = {pair.name for pair in found if len(pair.steps) < SPARSE * longest}
    # A stable sort: of two that part at one step the vital curve leads.
    partings.sort(key=lambda p: (p.metric in sparse, p.step))
    steps = np.unique(np.concatenate([pair.steps for pair in found])) if found else None
    return Comparison(
        judge(one),
        judge(other),
        differences(one, other),
        int(steps[0]) if steps is not None else None,
        int(steps[-1]) if steps is not None else None,
        len(steps) if steps is not None else 0,
        tuple(partings),
        tuple(p.name for p in found if p.name not in parted and len(p.steps) >= ENOUGH),
        tuple(p.name for p in found if p.name not in parted and len(p.steps) < ENOUGH),
        tuple(unlike),
        same_until(found),
        bool(found) and all(pair.identical for pair in found),
    )


def same_until(found: list[Pair], tolerance: float = 0.0) -> int | None:
    """The last common step up to which all curves are the same; None where they differ from the first on.

    tolerance: the part of a value by which two logs of one number may differ; 0 for bitwise.
    """
    if not found:
        return None
    apart = []
    for pair in found:
        differ = np.flatnonzero(~np.isclose(pair.a, pair.b, rtol=tolerance, atol=0.0))
        if len(differ):
            apart.append(int(pair.steps[differ[0]]))
    every = np.unique(np.concatenate([pair.steps for pair in found]))
    before = every[every < min(apart)] if apart else every
    return int(before[-1]) if len(before) else None
