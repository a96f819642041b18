"""The critic has learnt the mean of the returns and nothing else."""

from __future__ import annotations

from klinic.facts import SOME, Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

NOTHING = 0.05  # explained variance: a constant explains 0 (seed 001 section 6.4); healthy PPO in the lab ends at 0.14 to 0.21
WORSE = -0.5  # below this the critic is wrong, not flat: value-blowup
GROWN = 2.0  # times the own early loss: a loss that grows is not "low and still"


@failure(
    family="critic",
    stage="scale",
    explains="no-learning plateau",
    treatments=(
        Treatment("fix-code", "value_mask"),
        set_knob("critic_lr", scale=3),
        Treatment("inspect", "returns_against_values"),
    ),
)
def value_flat(facts: Facts) -> Verdict:
    """Need: explained variance at 0 to the end, and nothing is gained. Veto: it rises, or the loss explodes."""
    loss = facts.shape("value_loss")
    if loss is None and facts.shape("explained_variance") is None:
        facts.need("value_loss")
    (explained,) = facts.need("explained_variance")
    reward, success = facts.shape("reward"), facts.success
    late = explained.values[len(explained.values) // 2 :]
    if facts.few or facts.n < SOME or explained.highest >= NOTHING or late.mean() <= WORSE:
        return ruled_out(seen(facts, "explained_variance", "against", "explains"))
    if loss is not None and loss.after >= GROWN * max(loss.before, 1e-9):
        return ruled_out(seen(facts, "value_loss", "against", "loss-grows"))
    gained = (reward is not None and reward.rose) or (success is not None and success.rose)
    if gained:
        return ruled_out(seen(facts, "reward", "against", "gains"))
    if reward is None and success is None:
        facts.need("reward")
    values = facts.shape("value_mean")
    return present(
        "caution",
        early(facts),
        seen(facts, "explained_variance", "for", "explains-nothing"),
        seen(facts, "reward", "for", "nothing-moves") if reward is not None else None,
        seen(facts, "value_loss", "for", "loss-low") if loss is not None else None,
        seen(facts, "value_mean", "for", "mean-only") if values is not None else None,
    )
