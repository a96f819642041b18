"""The reference was silently replaced by the present policy: KL falls to 0 and grows again, the policy goes on."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._reference import drops, fallen, planned, policy_stays, regular

NEAR = 2  # rows between a restart and the drop
OLD = 4.0  # versions; KL estimated on samples this old moves by itself (staleness)


@failure(
    family="implementation",
    stage="implementation",
    explains="kl-runaway plateau recovered-spike",
    treatments=(Treatment("fix-code", "reference"), Treatment("inspect", "reference_path")),
)
def reference_reset(facts: Facts) -> Verdict:
    """Need: KL at a quarter of its level or less within a row, the policy's curves going on. Veto: planned, or they jump."""
    (kl,) = facts.need("kl")
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
