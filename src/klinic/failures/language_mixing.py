"""The reasoning drifts to another language than the question's."""

from __future__ import annotations

from klinic.curves.together import change_between
from klinic.facts import Facts, NotLogged
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen

RISE = 0.10  # share of the answers, or of their words: above what passes for flat (our choice; no paper gives a number)
FALL_Z = -3.0  # acc clearly falls over the same steps
FAR = 3.0  # times its early level: a KL that rose so much while acc fell is the policy running away (failure_modes.json: acc falls there)


@failure(
    family="behaviour",
    stage="reward",
    explains="",
    treatments=(
        Treatment("fix-reward", "language_reward", restart="may"),
        Treatment("inspect", "language_matters", restart="no"),
    ),
    restart="may",
)
def language_mixing(facts: Facts) -> Verdict:
    """Need: the share in the question's language falls by 0.10. Veto: KL runs away and acc falls."""
    mixed, kept = facts.shape("language_mixed"), facts.shape("language_ok")
    if mixed is None and kept is None:
        raise NotLogged("language_ok")
    role, curve = ("language_mixed", mixed) if mixed is not None else ("language_ok", kept)
    assert curve is not None
    # A reward part counts in units of its best level: what it pays is the author's choice.
    scale = 1.0 if role == "language_mixed" else max(curve.highest, 1.0 if _share(facts) else 1e-9)
    moved = (curve.after - curve.before) / scale * (1 if role == "language_mixed" else -1)
    turned = curve.rose if role == "language_mixed" else curve.fell
    if facts.few or not turned or moved < RISE:
        return ruled_out(seen(facts, role, "against", "one-language"))
    success, kl = facts.success, facts.shape("kl")
    begin = curve.onset.step if curve.onset is not None else facts.run.first
    z = change_between(success, begin, facts.run.last)[1] if success is not None else 0.0
    lost = z <= FALL_Z or (success is not None and success.fell)
    if lost and kl is not None and kl.rose and kl.after >= FAR * max(kl.before, kl.role.floor):
        return ruled_out(seen(facts, "kl", "against", "kl-first"))
    return present(
        "act" if lost else "caution",
        curve.onset,
        seen(facts, role, "for", "mixed"),
        seen(facts, facts.success_role, "for", "acc-down" if lost else "acc-kept", success)
        if success is not None
        else None,
        seen(facts, "kl", "for", "kl-calm") if kl is not None and not kl.sudden else None,
    )


def _share(facts: Facts) -> bool:
    metric = facts.metric("language_ok")
    return metric is not None and not metric.name.startswith("reward_part/")
