"""The reward fell to its floor and nothing logged says what moved first."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen, set_knob
from klinic.failures._spread import tail_left

LOST = 0.5  # of the way from the floor to the best level it had kept
SURE_Z = 6.0
TAIL = 0.12  # share of the run at the end that must be low throughout


@failure(
    family="outcome",
    stage="outcome",
    explains="",
    treatments=(
        Treatment("fix-reward", "task_normalisation", only_if="tail-lost"),
        set_knob("lr", scale=0.5, only_if="lost"),
        set_knob("kl_coef", to=0.005, only_if="lost"),
        Treatment("inspect", "rollouts"),
    ),
)
def reward_collapse(facts: Facts) -> Verdict:
    """Need: at least half of the best level is lost to the end; or the low tail is, under a mean that holds."""
    (reward,) = facts.need("reward")
    if facts.few or reward.n < 12:
        return ruled_out(seen(facts, "reward", "against", "kept"))
    best, floor, end = (
        reward.highest,
        min(float(reward.values.min()), 0.0),
        reward.level_over(1 - TAIL, 1.0),
    )
    sigma = max(reward.noise, 1e-9)
    lost = best - end
    if (
        best <= floor
        or lost < LOST * (best - floor)
        or lost < SURE_Z * reward.standard_error(reward.window)
        or lost < 3 * sigma
    ):
        if tail_left(facts):
            low, std = facts.shape("reward_low"), facts.shape("reward_std")
            return present(
                "caution",
                low.onset if low is not None else None,
                seen(facts, "reward_low", "for", "tail-lost", mean=reward.after),
                seen(facts, "reward_std", "for", "wider") if std is not None and std.rose else None,
            )
        return ruled_out(seen(facts, "reward", "against", "kept"))
    at = reward.crossing(best - 0.35 * lost, above=False, keep=0.85)
    return present(
        "stop",
        at,
        seen(facts, "reward", "for", "lost", best=best, end=end),
        sure=lost > 0.8 * (best - floor),
    )
