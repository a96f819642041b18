"""No gradient reaches the parameters although the groups differ."""

from __future__ import annotations

import numpy as np

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen

ROWS_AT_ZERO = 0.8  # share of rows whose gradient norm is exactly 0
MOVES = 1e-4  # nats/token: KL to the reference above this, and growing, shows that updates arrive
DIFFER = 0.75  # zero-variance share below which a gradient must exist


@failure(
    family="implementation",
    stage="implementation",
    explains="no-learning plateau",
    treatments=(Treatment("fix-code", "gradient_path"),),
)
def gradient_lost(facts: Facts) -> Verdict:
    """Need: gradient norm exactly 0 while rewards differ within groups. Veto: no group differs (then 0 is right)."""
    (gradient,) = facts.need("grad_norm")
    zero, spread = facts.shape("zero_std"), facts.shape("reward_std")
    if np.mean(gradient.values == 0) < ROWS_AT_ZERO:
        return ruled_out(seen(facts, "grad_norm", "against", "arrives"))
    kl = facts.level("kl")
    if kl is not None and kl.n > 1 and kl.last > MOVES and kl.last > 2 * abs(kl.first):
        return ruled_out(seen(facts, "kl", "against", "printed-short"))
    if zero is None and spread is None:
        facts.need("zero_std")
    differ = zero.after < DIFFER if zero is not None else spread is not None and spread.after > 0
    if not differ:
        return ruled_out(seen(facts, "zero_std", "against", "nothing-to-learn"))
    return present(
        "stop",
        early(facts),
        seen(facts, "grad_norm", "for", "none-arrives"),
        seen(facts, "zero_std" if zero is not None else "reward_std", "for", "groups-differ"),
        seen(facts, "kl", "for", "kl-zero") if kl is not None and not kl.values.any() else None,
        sure=True,
    )
