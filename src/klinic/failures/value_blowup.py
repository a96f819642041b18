"""The critic loses the returns: its loss explodes or it is worse than a constant."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob
from klinic.median import median

TIMES = 5.0  # of the own early level (science.md 1.3)
WORSE = -0.5  # explained variance; 0 is a constant guess
FROM_START = -1.0


@failure(
    family="critic",
    stage="scale",
    explains="reward-collapse entropy-collapse lr-too-high kl-runaway eval-regression reward-hacking format-collapse repetition eval-overfit",
    treatments=(
        set_knob("critic_lr", scale=0.3),
        Treatment("fix-reward", "reward_scale", restart="may"),
        Treatment("fix-code", "value_mask"),
    ),
)
def value_blowup(facts: Facts) -> Verdict:
    """Need: value loss five times its own early level, or explained variance far below 0."""
    loss, explained = facts.shape("value_loss"), facts.shape("explained_variance")
    if loss is None and explained is None:
        facts.need("value_loss")
    grown = (
        loss is not None
        and not facts.few
        and loss.highest >= TIMES * loss.before
        and loss.after >= 0.3 * TIMES * loss.before
    )
    worse = (
        explained is not None
        and float(median(explained.values)) <= WORSE
        and explained.after <= WORSE
    )
    bad_start = explained is not None and facts.few and explained.first <= FROM_START
    if not (grown or worse or bad_start):
        return ruled_out(
            seen(
                facts,
                "value_loss" if loss is not None else "explained_variance",
                "against",
                "steady",
            )
        )
    at = (
        loss.crossing(TIMES * loss.before, above=True, keep=0.3)
        if loss is not None and grown
        else early(facts)
    )
    return present(
        "act",
        at,
        seen(facts, "value_loss", "for", "loss-up") if grown else None,
        seen(facts, "explained_variance", "for", "explains-nothing")
        if explained is not None and explained.after < 0
        else None,
        sure=grown and loss is not None and loss.highest > 20 * loss.before,
    )
