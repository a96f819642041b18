"""An evaluation that is not trained on gets worse."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, set_knob
from klinic.failures._trend import evaluations, fallen, tasks

FALL = 0.10  # of a share; 96 samples have a standard error of 0.05 (binomial)
FORGOTTEN = 0.35  # a task of which so much is lost is gone, however well the trained one goes (chosen on the lab's runs)
SURE = 3.0  # standard errors of the points themselves
POINTS = 6  # evaluations below which a trend and a swing look alike (our choice)
PART = (
    0.5  # of the worst fall: what lost less than that is not the task that broke first (our choice)
)
TOLD = 4  # tasks that broke, named in the order in which they did


@failure(
    family="evaluation",
    stage="outcome",
    treatments=(
        Treatment("change-data", "mixed_data"),
        set_knob("kl_coef", to=0.005),
        set_knob("lr", scale=0.5),
    ),
)
def eval_regression(facts: Facts) -> Verdict:
    """Need: one evaluation (or one task of the training data) falls by 0.10 beyond its own noise. Names the first."""
    evals, trained = evaluations(facts, POINTS), tasks(facts, POINTS)
    if not evals and not trained:
        facts.need("acc") if not facts.named("eval/") else None
        return ruled_out()
    broken = fallen({**trained, **evals}, FALL, SURE, PART)
    if not broken:
        shape = next(iter({**evals, **trained}.values()))
        return ruled_out(Evidence("acc", "against", "kept", shape.word, shape.before, shape.after))
    worst = -min(went.change for _, _, went in broken)
    lines = []
    for i, (task, shape, went) in enumerate(broken[:TOLD]):
        lines.append(
            Evidence(
                "acc" if task in evals else f"acc_task/{task}",
                "for",
                "fell" if i == 0 else "then",
                shape.word if shape.fell else "falls",
                went.before,
                went.after,
                went.step,
                {"task": task},
            )
        )
    first, _, went = broken[0]
    return present(
        "stop" if worst > FORGOTTEN else "act" if worst > 2 * FALL else "caution",
        Onset(went.step, int(facts.run.first), went.step),
        *lines,
        slice=f"eval={first}" if first in evals else f"task={first}",
    )
