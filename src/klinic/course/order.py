"""Why klinic begins elsewhere than the remedy a course teaches: the evidence in the run decides the order."""

from __future__ import annotations

from klinic.course.desk import Desk
from klinic.course.words import has
from klinic.diagnosis import Diagnosis
from klinic.facts import Facts
from klinic.failures import cards
from klinic.render import _words as words
from klinic.text import figure


def why_first(desk: Desk, name: str, answer: Diagnosis, cures: str = "") -> str:
    """Klinic's first change and what in the log calls for it; empty where nothing special does.

    cures: what mends the run of the lab, as it is typed; there the log cannot show what is wrong in the code, and the
    sentence says so. Empty where klinic begins with just that.
    """
    action, main = answer.first_action, answer.main
    if action is None or main is None or action.kind.replace("-", " ") in cures:
        return ""
    if cures.startswith(f"change {action.flag}="):
        return ""
    condition = next(
        (
            t.only_if
            for t in cards()[main.failure].treatments
            if t.knob == action.knob and t.to in (None, action.new)
        ),
        "",
    )
    if not condition or not has(f"order.{condition}", desk.lang):
        return ""
    facts = Facts(answer.run)
    shapes = {role: facts.shape(role) for role in ("clip_frac", "trunc")}
    values = {
        "clip": figure(shapes["clip_frac"].highest) if shapes["clip_frac"] else "-",
        "trunc": figure(shapes["trunc"].after) if shapes["trunc"] else "-",
        "updates": figure(facts.number("updates_per_batch") or 1),
    }
    return desk.say(
        "order.lab" if cures else "order.first",
        log=name,
        what=words.short(action, desk.lang),
        why=desk.say(f"order.{condition}", **values),
    )
