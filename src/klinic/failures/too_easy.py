"""Most groups are all right: the data has nothing left to teach."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen, set_knob

# Seed 003's adv_std bands (0.8, 0.5, 0.3) as shares of zero-variance groups (science.md D1).
CAUTION, ACT, STOP = 0.35, 0.75, 0.91
RIGHT = 0.8  # share of right answers (failure_modes.json)
CHRONIC = 0.6  # zero-variance share of a task that was nearly solved when the run began
SOLVED = 0.95  # share of right answers at which the run has done its work
REWARD_HIGH = 0.7  # of its own maximum: the stand-in for "right" where no accuracy is logged
SHRUNK = 0.5  # of the largest advantage's own level: the stand-in where neither groups nor adv_std are logged
ENTROPY_GONE = 0.2  # of the early level: then the groups agree because nothing varies


@failure(
    family="data",
    stage="data",
    explains="zero-advantage plateau eval-regression eval-overfit",
    treatments=(
        Treatment("change-data", "harder_data", restart="may"),
        set_knob("dynamic_sampling", to=True, restart="may"),
        Treatment("fix-reward", "partial_credit", restart="may"),
    ),
    restart="may",
)
def too_easy(facts: Facts) -> Verdict:
    """Need: share of right answers above 0.8 and zero-variance groups above 0.35. Veto: entropy is gone."""
    zero = facts.shape("zero_std") or facts.shape("all_right")
    success = facts.success_level
    reward = facts.shape("reward")
    largest = facts.shape("adv_max")
    if (
        zero is None
        and success is not None
        and largest is not None
        and success.after >= RIGHT
        and largest.fell
        and largest.after < SHRUNK * largest.before
    ):
        return present(
            "caution",
            largest.onset,
            seen(facts, "adv_max", "for", "advantages-shrink"),
            seen(facts, facts.success_role, "for", "right", success),
        )
    if success is None and zero is not None and reward is not None and reward.n >= 100:
        high = (
            not reward.changed
            and float(reward.values.mean()) >= REWARD_HIGH * reward.values.max() > 0
        )
        if high and float(zero.values.mean()) >= CAUTION:
            return present(
                "caution",
                None,
                seen(facts, "zero_std", "for", "groups-agree", zero),
                seen(facts, "reward", "for", "reward-high"),
            )
    if zero is None:
        facts.need("zero_std")
    if success is None:
        facts.need_level("acc")
    assert zero is not None and success is not None
    entropy = facts.shape("entropy")
    if success.after < RIGHT or zero.after < CAUTION:
        return ruled_out(seen(facts, facts.success_role, "against", "not-full", success))
    if (
        entropy is not None
        and entropy.fell
        and entropy.after < ENTROPY_GONE * entropy.before
        and success.after < 0.95
    ):
        return ruled_out(seen(facts, "entropy", "against", "entropy-gone"))
    # Groups that agreed from the start on a task that is nearly solved burn compute, but nothing broke.
    chronic = zero.before >= CHRONIC
    # A critic compares with its own estimate: a group without variance still carries a gradient then.
    critic = facts.shape("value_loss") is not None
    severity = (
        "caution"
        if chronic or critic or success.after >= SOLVED
        else "stop"
        if zero.after >= STOP
        else "act"
        if zero.after >= ACT
        else "caution"
    )
    at = zero.onset if zero.rose else None
    return present(
        severity,
        at,
        seen(facts, "zero_std", "for", "groups-agree", zero),
        seen(facts, facts.success_role, "for", "right", success),
        seen(facts, "entropy", "for", "entropy-normal")
        if entropy is not None and not entropy.fell
        else None,
    )
