"""The reward rose and has levelled off: converged, or stuck; nothing is broken."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen

ROWS = 30


@failure(family="benign", stage="benign")
def plateau(facts: Facts) -> Verdict:
    """Need: reward changed upwards and stands still in the last third."""
    (reward,) = facts.need("reward")
    if reward.n < ROWS or not reward.rose or not reward.levelled:
        return ruled_out(seen(facts, "reward", "against", "still-moving"))
    return benign(None, seen(facts, "reward", "for", "levelled"))
