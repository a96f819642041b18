"""The smoke test: 20 steps with the one change, compared with the same steps of the old run.

Against an absolute test 20 steps have little power; against the old run's own steps they separate a true fix from
none (lab/lab.md section 5).
"""

from __future__ import annotations

from klinic.advise.knobs import command
from klinic.diagnosis import Diagnosis, Smoke
from klinic.run import Checkpoint
from klinic.trainers import GENERIC, tables

NO_CURVE = ("out-of-memory", "nan")  # here the run either gets past the step or it does not
STEPS = 20  # seeds: "run 20 smoke steps, then lengthen"


def smoke(answer: Diagnosis, back: Checkpoint | None) -> Smoke | None:
    """What to run and what to compare it with; None where nothing is wrong."""
    main = answer.main
    if main is None or main.failure in NO_CURVE:
        return None
    start = (
        back.step
        if back is not None
        else (main.onset.low if main.onset is not None else answer.run.first)
    )
    table = tables()[answer.run.trainer.name]
    flags = []
    for knob, value in (
        ("resume", back.path if back is not None else None),
        ("max_steps", start + STEPS),
    ):
        rule = table.knob.get(knob)
        if rule is not None and value is not None and table.name != GENERIC:
            flags.append(command(rule.flag, value, rule.style or table.style) or "")
    return Smoke(STEPS, start, start + STEPS, answer.first_mover or "reward", tuple(flags))
