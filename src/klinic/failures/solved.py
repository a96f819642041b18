"""Nearly every answer is right and stays so."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen

RIGHT = 0.95


@failure(family="benign", stage="benign")
def solved(facts: Facts) -> Verdict:
    """Need: share of right answers at or above 0.95 at the end."""
    success = facts.success_level
    if success is None:
        facts.need_level("acc")
    assert success is not None
    if success.n < 3 or success.after < RIGHT:
        return ruled_out(seen(facts, facts.success_role, "against", "not-all", success))
    return benign(
        success.onset if success.rose else None,
        seen(facts, facts.success_role, "for", "right", success),
    )
