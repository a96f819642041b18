"""The judge is more and more pleased, and less and less of it is true."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._trend import Trend, trend
from klinic.vitals import ROLES, players

FALL = 0.05  # of a share: three times the standard deviation of the noisiest evaluation (RLHF book, appendix C: 1.5 points)
MUCH = 0.15  # "largely stable evaluations can drop by 10 to 20 points when very broken" (the same)
SURE = 3.0  # standard errors of the points themselves
POINTS = 6  # evaluations below which a trend and a swing look alike (our choice)


@failure(
    family="behaviour",
    stage="reward",
    explains="eval-regression",
    treatments=(
        Treatment("inspect", "factual_eval", restart="no"),
        Treatment("fix-reward", "factual_reward"),
    ),
)
def factuality_drop(facts: Facts) -> Verdict:
    """Need: an evaluation of facts falls while the judge's score (or the reward) rises. Veto: it is within its noise."""
    facts.need("factuality")
    name, true, went = _worst(facts)
    if true is None or went is None or went.change > -FALL or went.z > -SURE:
        return ruled_out(seen(facts, "factuality", "against", "facts-kept", true))
    role = "helpfulness" if facts.shape("helpfulness") is not None else "reward"
    (pleased,) = facts.need(role)
    if not (pleased.rose or (pleased.n < 40 and trend(pleased).z >= SURE)):
        return ruled_out(seen(facts, role, "against", "nothing-rises"))
    return present(
        "act" if went.change <= -MUCH else "caution",
        Onset(went.step, int(true.steps[0]), went.step),
        Evidence("factuality", "for", "false", "falls", went.before, went.after, went.step),
        seen(facts, role, "for", "pleased"),
        slice=f"eval={name}",
    )


def _worst(facts: Facts) -> tuple[str, Shape | None, Trend | None]:
    """The evaluation of facts that fell most."""
    found: tuple[str, Shape | None, Trend | None] = ("", None, None)
    for name in players("factuality", facts.run.curves):
        shape = facts.named(name).get(name)
        if shape is None or shape.n < POINTS or shape.values.max() > 1 + 1e-6:
            continue
        went = trend(Shape(ROLES["factuality"], shape.steps, shape.values))
        if found[2] is None or went.change < found[2].change:
            found = (name.removeprefix("eval/").removesuffix("/acc"), shape, went)
    return found
