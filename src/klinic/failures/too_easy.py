"""Most groups are all right: the data has nothing left to teach."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen, set_knob

# Seed 003's adv_std bands (0.8, 0.5, 0.3) as shares of zero-variance groups (science.md D1).
CAUTION, ACT, STOP = 0.35, 0.75, 0.91
RIGHT = 0.8  # share of right answers (failure_modes.json)
ENTROPY_GONE = 0.2  # of the early level: then the groups agree because nothing varies


@failure(
    family="data",
    stage="data",
    explains="zero-advantage plateau",
    treatments=(Treatment("change-data", "harder_data", restart="may"), set_knob("dynamic_sampling", to=True, restart="may"), Treatment("fix-reward", "partial_credit", restart="may")),
    restart="may",
)
def too_easy(facts: Facts) -> Verdict:
    """Need: share of right answers above 0.8 and zero-variance groups above 0.35. Veto: entropy is gone."""
    zero = facts.shape("zero_std") or facts.shape("all_right")
    success = facts.success
    if zero is None:
        facts.need("zero_std")
    if success is None:
        facts.need("acc")
    assert zero is not None and success is not None
    entropy = facts.shape("entropy")
    if success.after < RIGHT or zero.after < CAUTION:
        return ruled_out(seen(facts, facts.success_role, "against", "not-full", success))
    if entropy is not None and entropy.fell and entropy.after < ENTROPY_GONE * entropy.before and success.after < 0.95:
        return ruled_out(seen(facts, "entropy", "against", "entropy-gone"))
    severity = "stop" if zero.after >= STOP else "act" if zero.after >= ACT and success.after < 0.95 else "caution"
    at = zero.onset if zero.rose else None
    return present(
        severity,
        at,
        seen(facts, "zero_std", "for", "groups-agree", zero),
        seen(facts, facts.success_role, "for", "right", success),
        seen(facts, "entropy", "for", "entropy-normal") if entropy is not None and not entropy.fell else None,
    )
