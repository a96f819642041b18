"""Nearly every group is all wrong: nothing to learn from."""

from __future__ import annotations

from klinic.facts import Facts, NotLogged
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    early,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)
from klinic.failures._format import format_curve

WRONG = 0.05  # share of right answers (0.03 in failure_modes.json; a lab run at 0.02 to 0.03 passed that in noise)
UNREAD = 0.05  # share in the right format at both ends: the content was never judged
PARTLY = (
    0.10  # share partly right: enough that a group of eight has one more often than not (1 - 0.9^8)
)
GROUPS = 0.65  # share of zero-variance groups: what eight samples give at WRONG (0.95^8); failure_modes.json has 0.8


@failure(
    family="data",
    stage="data",
    explains="zero-advantage no-learning plateau gradient-lost",
    treatments=(
        Treatment("change-data", "format_warm_up", only_if="format-never"),
        Treatment("fix-reward", "partial_credit", only_if="partly-right"),
        Treatment("change-data", "easier_data"),
        set_knob("group_size", scale=2),
        Treatment("fix-reward", "partial_credit"),
        Treatment("inspect", "verifier", restart="no"),
    ),
)
def too_hard(facts: Facts) -> Verdict:
    """Need: hardly any right answer from start to end, and groups without variance. Veto: it was learning before."""
    success, reward, spread = facts.success_level, facts.shape("reward"), facts.shape("reward_std")
    zero = facts.shape("zero_std") or facts.shape("all_wrong")
    floor = reward is not None and reward.values.max() == 0 and reward.values.min() == 0
    if success is None and not floor:
        facts.need_level("acc")
    if zero is None and spread is None and not floor:
        facts.need("zero_std")
    none_right = floor or (success is not None and max(success.before, success.after) <= WRONG)
    same = (zero is not None and min(zero.before, zero.after) >= GROUPS) or (
        zero is None and (floor or (spread is not None and spread.after == 0))
    )
    if not none_right or not same:
        return ruled_out(seen(facts, facts.success_role, "against", "some-right", success))
    return present(
        "stop" if not facts.few else "act",
        early(facts),
        seen(facts, "reward", "for", "all-wrong"),
        seen(facts, "zero_std", "for", "groups-agree") if zero is not None else None,
        *_why(facts),
        sure=True,
    )


def _why(facts: Facts) -> list[Evidence]:
    """What the other shares say: unreadable, partly right, or a verifier that fails (seed 001 section 3.5)."""
    found = []
    try:
        ok, role = format_curve(facts)
    except NotLogged:
        ok = None
    if ok is not None and max(ok.before, ok.after) <= UNREAD:
        found.append(seen(facts, role, "for", "format-never", ok))
    partly = facts.shape("partial")
    if partly is not None and partly.after >= PARTLY:
        found.append(seen(facts, "partial", "for", "partly-right"))
    return found
