"""An evaluation that is not trained on gets worse."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, set_knob
from klinic.median import median

FALL = 0.10  # of a share; 96 samples have a standard error of 0.05 (binomial)
FORGOTTEN = 0.35  # a task of which so much is lost is gone, however well the trained one goes (chosen on the lab's runs)
KEPT = 0.15  # part of the fall: the last evaluation above it is where the fall begins
SURE = 3.0  # standard errors of the points themselves
POINTS = 6


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
    """Need: one evaluation falls by 0.10 beyond its own noise. Names the one that fell most."""
    evals = {
        name: shape
        for name, shape in facts.named("eval/").items()
        if shape.n >= POINTS and shape.values.max() <= 1.0 + 1e-6 and shape.values.min() >= 0
    }
    if not evals:
        facts.need("acc") if not facts.named("eval/") else None
        return ruled_out()
    worst: tuple[float, str, float, float, int] | None = None
    for name, shape in evals.items():
        first, last = max(2, shape.n // 6), max(2, shape.n // 3)
        begin, end = shape.values[:first], shape.values[-last:]
        # A trend within the windows is no noise: neighbouring points tell what is.
        noise = 1.4826 * float(median(np.abs(np.diff(shape.values)))) / np.sqrt(2)
        error = float(noise * np.sqrt(1 / first + 1 / last)) + 0.01
        fall = float(begin.mean() - end.mean())
        if fall >= FALL and fall / error >= SURE and (worst is None or fall > worst[0]):
            worst = (
                fall,
                name,
                float(begin.mean()),
                float(end.mean()),
                _begin(shape, float(begin.mean()), fall),
            )
    if worst is None:
        name, shape = next(iter(evals.items()))
        return ruled_out(Evidence("acc", "against", "kept", shape.word, shape.before, shape.after))
    fall, name, before, after, step = worst
    task = name.removeprefix("eval/").removesuffix("/acc")
    return present(
        "stop" if fall > FORGOTTEN else "act" if fall > 2 * FALL else "caution",
        Onset(step, int(facts.run.first), step),
        Evidence("acc", "for", "fell", "falls", before, after, step, {"task": task}),
        slice=f"eval={task}",
    )


def _begin(shape: Shape, level: float, fall: float) -> int:
    """The last step at which the evaluation was still near its first level."""
    high = np.flatnonzero(shape.values >= level - KEPT * fall)
    last = int(shape.steps[high[-1]]) if len(high) else int(shape.steps[0])
    return min(last, shape.onset.step) if shape.onset is not None and shape.changed else last
