"""After a restart the run does not go on where it stopped."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen

JUMP_Z = 6.0  # of the curve's own noise, at the restart (failure_modes.json: jump > 6 noise units)
AROUND = 8  # rows on each side of a restart that are compared
AGED = 10.0  # versions older from one row to the next: no asynchronous queue grows so at once (our choice; lab: 100)
ROLES = ("acc", "entropy", "kl", "len", "mismatch", "grad_norm")


@failure(
    family="implementation",
    stage="implementation",
    explains="weight-sync-failure staleness recovered-spike kl-runaway verifier-error small-batch-noise lr-too-high format-collapse",
    treatments=(Treatment("fix-code", "clear_queue"), Treatment("fix-code", "restore_all")),
)
def resume_mismatch(facts: Facts) -> Verdict:
    """Need: a jump right at a restart, or samples that become ten versions older from one row to the next."""
    lag = facts.shape("staleness")
    restarts = [segment.first for segment in facts.run.segments[1:]]
    if lag is None and not restarts:
        facts.need("staleness")
    if lag is not None and lag.n > 1:
        growth = np.diff(lag.values)
        i = int(np.argmax(growth))
        if growth[i] >= AGED:
            step = int(lag.steps[i + 1])
            gap = facts.shape("mismatch")
            return present(
                "act",
                Onset(step, int(lag.steps[i]), step),
                Evidence(
                    "staleness",
                    "for",
                    "old-at-once",
                    "surges",
                    float(lag.values[i]),
                    float(lag.values[i + 1]),
                    step,
                ),
                seen(facts, "mismatch", "for", "gap") if gap is not None else None,
                sure=True,
            )
    for step in restarts:
        jumps = [found for role in ROLES if (found := _jump(facts, role, step)) is not None]
        if len(jumps) > 1:
            return present("act", Onset(step, step, step), *jumps)
    if restarts:
        return ruled_out(Evidence("acc", "against", "goes-on", values={"step": restarts[0]}))
    return ruled_out(seen(facts, "staleness", "against", "age-steady"))


def _jump(facts: Facts, role: str, step: int) -> Evidence | None:
    """A step of the level at the restart, in units of the difference between neighbouring rows."""
    shape = facts.shape(role)
    if shape is None:
        return None
    before = shape.values[shape.steps < step][-AROUND:]
    after = shape.values[shape.steps >= step][:AROUND]
    if len(before) < AROUND or len(after) < AROUND:
        return None
    noise = float(np.median(np.abs(np.diff(np.r_[before])))) + 1e-9
    change = float(np.median(after) - np.median(before))
    if abs(change) < JUMP_Z * noise:
        return None
    return Evidence(
        role, "for", "jump", "drifts", float(np.median(before)), float(np.median(after)), step
    )
