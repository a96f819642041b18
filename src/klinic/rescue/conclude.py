"""What a verdict and a second diagnosis make of an attempt, and how the ledger is told."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from klinic.compare.smoke import Smoke
from klinic.diagnosis import Diagnosis
from klinic.rescue.ledger import Ledger
from klinic.rescue.outcome import Attempt
from klinic.rescue.plan import Treatment


def concluded(
    ledger: Ledger, treatment: Treatment, verdict: Smoke, after: Diagnosis | None, folder: Path
) -> Attempt:
    """Rescued if the failure is not in the run that went on, and nothing else is."""
    if after is None:
        return Attempt(treatment, verdict.verdict, verdict, None, folder)
    still = [f.failure for f in after.findings if f.status in ("present", "consequence")]
    gone = verdict.failure not in still and after.status in ("healthy", "caution")
    ledger.once(
        "diagnosed-again", treatment=treatment.name, status=after.status, found=still, gone=gone
    )
    outcome = "rescued" if gone and verdict.verdict != "worse" else verdict.verdict
    if outcome == "better" and verdict.failure not in still:
        outcome = "other"
    return Attempt(treatment, outcome, verdict, after, folder)


def lean(attempt: Attempt) -> float:
    """Standard errors by which the judged curve is better than the control's; 0 where it was not judged."""
    verdict = attempt.verdict
    if verdict is None or verdict.mover is None or verdict.toward is None:
        return 0.0
    return -verdict.toward.worse * verdict.mover.z


def shows_until(old: Diagnosis, last: int) -> bool:
    """Whether the old run, cut after a step, is diagnosed with its failure; its healthy beginning is kept."""
    from klinic.diagnose import judge

    if old.main is None:
        return False
    curves = {}
    for name, curve in old.run.curves.items():
        inside = curve.steps <= last
        if inside.any():
            curves[name] = replace(curve, steps=curve.steps[inside], values=curve.values[inside])
    again = judge(replace(old.run, curves=curves, last=min(last, old.run.last)))
    return any(
        f.failure == old.main.failure and f.status in ("present", "consequence")
        for f in again.findings
    )


def figures(verdict: Smoke) -> dict[str, Any]:
    """The verdict as the ledger has it."""
    seen = verdict.mover
    return {
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "steps": [verdict.first, verdict.last],
        "mover": seen.metric if seen else None,
        "control": _short(seen.control) if seen else None,
        "new": _short(seen.new) if seen else None,
        "z": _short(seen.z) if seen else None,
        "broke": [e.metric for e in verdict.broke],
        "settings": None
        if verdict.changed is None
        else [[c.name, c.a, c.b] for c in verdict.changed],
    }


def _short(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None
