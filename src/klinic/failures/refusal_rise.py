"""More and more harmless questions are refused."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._trend import trend

RISE = 0.05  # of the questions; a fixed set of a few hundred harmless ones has a standard error of 0.01 (binomial)
MUCH = 0.20  # one question in five: no longer a matter of taste
SURE = 3.0  # standard errors of the points themselves
POINTS = 6  # evaluations below which a trend and a swing look alike (our choice)


@failure(
    family="behaviour",
    stage="reward",
    explains="length-collapse template-collapse",
    treatments=(
        Treatment("fix-reward", "task_weights", restart="may"),
        Treatment("change-data", "benign_prompts", restart="may"),
    ),
    restart="may",
)
def refusal_rise(facts: Facts) -> Verdict:
    """Need: a refusal rate rises by 0.05 beyond its own noise. Names the set of questions where it rises most."""
    facts.need("refusal")
    curves = {n: s for n, s in facts.named("refusal/").items() if s.n >= POINTS}
    went = {name: trend(shape) for name, shape in curves.items()}
    more = [n for n, t in went.items() if t.change >= RISE and t.z >= SURE]
    if not more:
        return ruled_out(seen(facts, "refusal", "against", "steady"))
    name = max(more, key=lambda n: went[n].change)
    shape, rise, length = curves[name], went[name], facts.shape("len")
    success = facts.success
    at = (
        shape.onset
        if shape.rose
        else Onset(rise.step, max(facts.run.first, int(shape.steps[0])), rise.step)
    )
    which = name.removeprefix("refusal/")
    return present(
        "act" if rise.change >= MUCH else "caution",
        at,
        Evidence(
            "refusal",
            "for",
            "more",
            shape.word if shape.rose else "rises",
            rise.before,
            rise.after,
            at.step if at else rise.step,
        ),
        seen(facts, "len", "for", "shorter") if length is not None and length.fell else None,
        seen(facts, facts.success_role, "for", "task-kept", success)
        if success is not None and not success.fell
        else None,
        slice=f"questions={which}" if len(curves) > 1 else None,
    )
