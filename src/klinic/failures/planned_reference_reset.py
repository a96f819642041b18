"""KL falls to 0 on schedule: the reference is meant to follow the policy."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Verdict, benign, failure, ruled_out, seen
from klinic.failures._reference import drops, fallen, planned, policy_stays, regular

MIXED = 0.7  # of the level before: a schedule may mix the old reference with the policy (TRL ref_model_mixup_alpha 0.6)


@failure(family="benign", stage="benign")
def planned_reference_reset(facts: Facts) -> Verdict:
    """Need: drops of KL that the configuration announces, or three at equal distances, the policy's curves going on."""
    (kl,) = facts.need("kl")
    announced = planned(facts)
    found = (drops(kl, MIXED, MIXED) if announced else drops(kl)) if not facts.few else []
    period = regular(found)
    if not found or (not announced and period is None):
        return ruled_out(seen(facts, "kl", "against", "not-planned" if found else "no-drop"))
    same, moved = policy_stays(facts, found[0])
    if moved and not announced:
        return ruled_out(*moved)
    return benign(
        Onset(found[0], found[0], found[0]),
        fallen(facts, kl, found[0]),
        Evidence("kl", "for", "announced", values={"value": str(facts.setting("ref_sync"))})
        if announced
        else Evidence("kl", "for", "on-schedule", values={"count": len(found), "period": period}),
        *same[:1],
    )
