"""More and more answers loop or turn into garble."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import (
    Treatment,
    Verdict,
    early,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)

RISE = 0.10  # share of the answers: twice what passes for flat (our choice; arXiv 2506.13585 stops loops, its numbers not read)
MOST = 0.5  # half of the answers loop
WRONG = 0.05  # share of right answers below which looping from the first step means that the weights are not there
CUT = 0.15  # truncated share that must be handled (seed 000): a loop ends at the cap


@failure(
    family="behaviour",
    stage="step",
    explains="length-explosion truncation-rise reward-collapse format-collapse too-hard zero-advantage eval-regression",
    treatments=(
        Treatment("fix-code", "load_weights", only_if="from-start"),
        Treatment("fix-code", "repetition_stop", restart="may"),
        set_knob("mask_truncated", to=True, only_if="truncates"),
        set_knob("kl_coef", to=0.005),
    ),
)
def repetition(facts: Facts) -> Verdict:
    """Need: the share of repetitive answers rises by 0.10, or is above a half from the first step with nothing right."""
    (loops,) = facts.need("repetition")
    success, trunc, entropy = facts.success, facts.level("trunc"), facts.shape("entropy")
    if min(loops.first, loops.before, loops.after) >= MOST:
        right = facts.success_level
        if right is None or max(right.before, right.after) <= WRONG:
            return present(
                "stop",
                early(facts),
                seen(facts, "repetition", "for", "from-start"),
                seen(facts, facts.success_role, "for", "none-right", success) if success else None,
                sure=True,
            )
    if facts.few or not loops.rose or loops.after - loops.before < RISE:
        return ruled_out(seen(facts, "repetition", "against", "no-loops"))
    lost = success is not None and success.fell
    cut = trunc is not None and trunc.rose and trunc.after >= CUT
    kind = None
    if entropy is not None and entropy.changed:
        kind = seen(facts, "entropy", "for", "garble" if entropy.rose else "loops")
    return present(
        "stop" if loops.after >= MOST else "act" if lost or cut else "caution",
        loops.onset,
        seen(facts, "repetition", "for", "more-loops"),
        seen(facts, facts.success_role, "for", "acc-down", success) if lost else None,
        seen(facts, "trunc", "for", "cut") if cut else None,
        kind,
        sure=loops.after >= MOST,
    )
