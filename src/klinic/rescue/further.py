"""A number that was turned too little is turned further the same way."""

from __future__ import annotations

import re
from dataclasses import replace

from klinic.advise.knobs import command
from klinic.rescue.plan import Treatment, value_text
from klinic.trainers import Table

# What acts by orders of magnitude. The first value of an advice is a careful one: half a learning rate that is ten
# times too large still is five times too large.
BY_FACTOR = ("lr", "critic_lr", "kl_coef", "entropy_coef", "max_grad_norm")
LEAST = 4.0  # a step further is at least this factor (our choice: two more of them cover a factor of 16)
FROM_ZERO = 10.0  # where the old value was 0 there is no factor


def further(treatment: Treatment, times: int, table: Table) -> Treatment | None:
    """The treatment turned further for the ``times``-th time (1, 2, ...); None for what has no further.

    Half becomes an eighth and a thirty-second of the old value, ten times becomes a hundred and a thousand times.
    """
    action = treatment.action
    if treatment.how != "set" or action.knob not in BY_FACTOR or not _number(action.new):
        return None
    old = action.old if _number(action.old) else 0
    if not action.new or (old and (old > 0) != (action.new > 0)):
        return None
    step = action.new / old if old else FROM_ZERO
    step = max(step, LEAST) if step > 1 else min(step, 1 / LEAST)
    new = float(f"{action.new * step**times:.3g}")
    flag = action.flag or action.knob
    rule = table.knob.get(action.knob)
    style = rule.style if rule is not None and rule.style else table.style
    text = value_text(new)
    number = treatment.name.partition("-")[0]
    return replace(
        treatment,
        name=f"{number}-{action.knob}-" + re.sub(r"[^\w.+-]", "_", text),
        action=replace(action, new=new, command=command(flag, new, style)),
        text=f"{flag}={text}",
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
