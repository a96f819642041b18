"""Responses shrink to half and the answers get no better."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen, set_knob

SHRUNK = 0.5  # of the own early length (failure_modes.json)
RUINED = 0.5  # of the early share of right answers


@failure(
    family="length",
    stage="reward",
    explains="entropy-collapse zero-advantage too-hard kl-runaway eval-regression reward-hacking plateau reward-collapse",
    treatments=(
        Treatment("fix-reward", "length_penalty", restart="may"),
        set_knob("max_new_tokens", scale=2),
        set_knob("kl_coef", scale=0.5),
    ),
)
def length_collapse(facts: Facts) -> Verdict:
    """Need: half the early length, acc not rising. Veto: acc rises (the answers became concise)."""
    (length,) = facts.need("len")
    success = facts.success
    share = length.after / max(length.before, 1e-9)
    if facts.few or not length.fell or share > SHRUNK:
        return ruled_out(seen(facts, "len", "against", "length-kept", share=share))
    if success is None:
        return present(
            "caution", length.onset, seen(facts, "len", "for", "length-down", share=share)
        )
    if not success.fell:
        return ruled_out(seen(facts, facts.success_role, "against", "concise", success))
    reward = facts.shape("reward")
    pays = reward is not None and facts.success_role == "acc" and reward.rose
    return present(
        "stop" if success.after < RUINED * success.before else "act",
        length.onset,
        seen(facts, "len", "for", "length-down", share=share),
        seen(facts, facts.success_role, "for", "acc-lost", success),
        seen(facts, "reward", "for", "reward-pays") if pays else None,
    )
