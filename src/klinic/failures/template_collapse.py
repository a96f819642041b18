"""Different questions get the same answer, while the entropy looks normal."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen, set_knob

RISE = 0.10  # of the similarity across questions: beyond what passes for flat (our choice; RAGEN-2 gives no number in its abstract)
SPREAD = 0.7  # of the early reward std: within-prompt differences die out (RAGEN: the early sign)
GROUPS = 0.15  # more groups without variance, where the std is not logged
COLLAPSED, NEAR_ZERO = (
    0.2,
    0.03,
)  # entropy against its early level, and in nats/token: then it is entropy-collapse (science.md D2)
SURGE = 4.0  # times its early gradient norm: the point of no return (RAGEN's third phase; 4 as in science.md 2.4)


@failure(
    family="exploration",
    stage="reward",
    explains="zero-advantage plateau reward-collapse no-learning eval-regression",
    treatments=(
        set_knob("dynamic_sampling", to=True),
        Treatment("change-data", "more_prompts"),
        set_knob("clip_high", to=0.28, only_if="clips"),
    ),
)
def template_collapse(facts: Facts) -> Verdict:
    """Need: similarity across questions rises, rewards differ less within them. Veto: entropy is gone."""
    (alike,) = facts.need("similarity")
    spread, zero, entropy = (facts.shape(r) for r in ("reward_std", "zero_std", "entropy"))
    if spread is None and zero is None:
        facts.need("reward_std")
    if facts.few or not alike.rose or alike.after - alike.before < RISE:
        return ruled_out(seen(facts, "similarity", "against", "different"))
    if entropy is not None and (
        entropy.after <= COLLAPSED * entropy.before
        or (facts.level("entropy") is not None and entropy.after < NEAR_ZERO)
    ):
        return ruled_out(seen(facts, "entropy", "against", "entropy-gone"))
    narrower = spread is not None and spread.fell and spread.after <= SPREAD * spread.before
    equal = zero is not None and zero.rose and zero.after - zero.before >= GROUPS
    if not narrower and not equal:
        return ruled_out(
            seen(facts, "reward_std" if spread is not None else "zero_std", "against", "differ")
        )
    gradient = facts.shape("grad_norm")
    late = (
        gradient is not None
        and gradient.rose
        and gradient.after >= SURGE * max(gradient.before, gradient.role.floor)
    )
    return present(
        "stop" if late else "act",
        alike.onset,
        seen(facts, "similarity", "for", "alike"),
        seen(facts, "reward_std", "for", "narrower") if narrower else None,
        seen(facts, "zero_std", "for", "equal") if equal else None,
        seen(facts, "entropy", "for", "entropy-normal") if entropy is not None else None,
        seen(facts, "grad_norm", "for", "gradient") if late else None,
    )
