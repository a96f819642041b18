"""Whether the weights move at all, where the learning rate is logged or stated as 0."""

from __future__ import annotations

from klinic.facts import Facts

STILL = 1e-4  # nats/token to the reference: a policy that moves is further away within a few steps


def at_rest(facts: Facts) -> bool:
    """Whether nothing is learnt: a learning rate of 0 that is more than a number printed with too few digits."""
    if facts.number("lr") == 0:
        return True
    lr, kl = facts.shape("lr"), facts.level("kl")
    zero = lr is not None and not lr.values.any()
    return zero and kl is not None and kl.highest < STILL
