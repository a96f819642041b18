"""The reference was silently replaced by the present policy: KL falls to 0 and grows again, the policy goes on."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import SOME, Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    early,
    failure,
    present,
    ruled_out,
    seen,
)
from klinic.failures._reference import POLICY, drops, fallen, planned, policy_stays, regular

NEAR = 2  # rows between a restart and the drop
ITSELF = 1e-5  # nats/token on every row while the policy moves: KL is measured against the policy (seed 001 section 3.1)
MOVED = 2  # curves of the policy that must have changed
OLD = 4.0  # versions; KL estimated on samples this old moves by itself (staleness)


@failure(
    family="implementation",
    stage="implementation",
    explains="kl-runaway plateau recovered-spike",
    treatments=(Treatment("fix-code", "reference"), Treatment("inspect", "reference_path")),
)
def reference_reset(facts: Facts) -> Verdict:
    """Need: KL at a quarter of its level or less within a row, the policy's curves going on; or at 0 throughout although
    they move. Veto: planned, or they jump there."""
    (kl,) = facts.need("kl")
    tiny = facts.level("kl") is not None and float(abs(kl.values).max()) < ITSELF
    if facts.n >= SOME and tiny and facts.number("kl_coef") != 0:
        shapes = {role: s for role in POLICY if (s := facts.shape(role)) is not None}
        changed = [role for role, s in shapes.items() if s.changed]
        if len(changed) >= MOVED and any(_fine(s) for s in shapes.values()):
            return present(
                "caution",
                early(facts),
                seen(facts, "kl", "for", "kl-always-zero"),
                *[seen(facts, role, "for", "policy-moves") for role in changed[:2]],
            )
    found = drops(kl) if not facts.few else []
    if not found:
        return ruled_out(seen(facts, "kl", "against", "no-drop"))
    if planned(facts) or regular(found) is not None:
        return ruled_out(seen(facts, "kl", "against", "planned"))
    lag = facts.shape("staleness")
    if lag is not None and lag.highest >= OLD:
        return ruled_out(seen(facts, "staleness", "against", "samples-old"))
    restarts = [segment.first for segment in facts.run.segments[1:]]
    step = next((s for s in found if any(abs(s - r) <= NEAR for r in restarts)), found[0])
    same, moved = policy_stays(facts, step)
    if moved:
        return ruled_out(*moved)
    if not same:
        facts.need("entropy")
    restarted = any(abs(step - r) <= NEAR for r in restarts)
    return present(
        "act" if restarted else "caution",
        Onset(step, step, step),
        fallen(facts, kl, step),
        Evidence("kl", "for", "at-restart", values={"step": step}) if restarted else None,
        *same[:2],
        sure=restarted,
    )


def _fine(shape: Shape) -> bool:
    """Whether the log prints digits as small as ``ITSELF``: a KL printed as 0.000 is not 0."""
    units = shape.values / ITSELF
    return bool(np.any(np.abs(units - np.round(units)) > 1e-3)) or bool(
        np.any(np.round(units) % 10 != 0)
    )
