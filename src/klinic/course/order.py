"""Why klinic begins elsewhere than the remedy a course teaches: the evidence in the run decides the order."""

from __future__ import annotations

from klinic.course.desk import Desk
from klinic.course.words import has
from klinic.diagnosis import Diagnosis
from klinic.facts import Facts
from klinic.failures import cards
from klinic.render import _words as words

# What klinic notes itself where the field guide and the literature disagree on the first change.
SETTLED = ("dispute.collapse-clips", "dispute.collapse-updates")


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
    settled = next((n for n in answer.notes if n.sentence in SETTLED), None)
    condition = next(
        (
            t.only_if
            for t in cards()[main.failure].treatments
            if t.knob == action.knob and t.to in (None, action.new)
        ),
        "",
    )
    if settled is not None:
        why = words.note(settled, desk.lang)
    elif condition and has(f"order.{condition}", desk.lang):
        trunc = Facts(answer.run).shape("trunc")
        why = desk.say(f"order.{condition}", trunc=trunc.after if trunc else "-")
    else:
        return ""
    return desk.say(
        "order.lab" if cures else "order.first",
        log=name,
        what=words.short(action, desk.lang),
        why=why,
    )
