"""Fewer and fewer answers have the right format, so fewer count as right."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.curves.together import change_between
from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._format import format_curve

LOST = 0.10  # of all answers; failure_modes.json proposes a rise of the errors by 0.05, which small batches reach by chance
SURE_Z = 6.0  # standard errors (science.md 1.2 e)
GONE = 0.5  # half of the answers: then most of the batch says nothing
FALL_Z = -3.0  # acc clearly falls over the same steps
RISE_Z = 3.0  # acc clearly rises: the answers are found all the same
OTHER = 0.5  # part of the loss that cut answers or the verifier's own failures must explain to be its cause
CUT = 0.15  # truncated share that must be handled (seed 000)


@failure(
    family="behaviour",
    stage="step",
    explains="reward-collapse too-hard zero-advantage eval-regression reward-hacking plateau",
    treatments=(
        Treatment("fix-reward", "format_reward", restart="may"),
        Treatment("inspect", "stop_token", restart="no"),
    ),
    restart="may",
)
def format_collapse(facts: Facts) -> Verdict:
    """Need: the share in the right format is lost, acc does not rise. Veto: answers are cut, the verifier fails."""
    ok, role = format_curve(facts)
    success, trunc, verifier = facts.success, facts.level("trunc"), facts.shape("verifier_error")
    if success is None:
        facts.need("acc")
    assert success is not None
    lost = ok.highest - ok.after
    if facts.few or lost < LOST or lost < SURE_Z * ok.standard_error(ok.window):
        return ruled_out(seen(facts, role, "against", "format-kept", ok))
    if trunc is not None and trunc.after >= CUT and trunc.after - trunc.before >= OTHER * lost:
        return ruled_out(seen(facts, "trunc", "against", "cut"))
    if verifier is not None and verifier.after - verifier.before >= OTHER * lost:
        return ruled_out(seen(facts, "verifier_error", "against", "verifier"))
    at = _begin(ok, lost)
    moved = change_between(success, at.step if at else facts.run.first, facts.run.last)[1]
    if moved >= RISE_Z:
        return ruled_out(seen(facts, facts.success_role, "against", "acc-rises", success))
    down = moved <= FALL_Z or success.fell
    kl = facts.shape("kl")
    return present(
        ("stop" if ok.after <= GONE * ok.highest else "act") if down else "caution",
        at,
        seen(facts, role, "for", "format-lost", ok, best=ok.highest),
        seen(facts, facts.success_role, "for", "acc-down", success) if down else None,
        seen(facts, "kl", "for", "kl-mild") if kl is not None and kl.rose else None,
        sure=down and lost >= GONE,
    )


def _begin(ok: Shape, lost: float) -> Onset | None:
    """The bend where the curve only falls; where the format was learnt before, the step from which it stays lost."""
    if ok.fell and ok.before >= ok.highest - lost / 2:
        return ok.onset
    return ok.crossing(ok.highest - LOST / 2, above=False)
