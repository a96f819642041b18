"""From the first cause to one change, a checkpoint to go back to, and the flags for what was not logged."""

from __future__ import annotations

from dataclasses import replace

from klinic.advise.checkpoints import roll_back_to
from klinic.advise.disputes import disputes
from klinic.advise.knobs import action, lacks_knob, line_in
from klinic.advise.smoke import smoke
from klinic.diagnosis import Action, Diagnosis, Missing, Note
from klinic.facts import Facts
from klinic.failures import cards
from klinic.run import Run
from klinic.text import LANGUAGES, say_in
from klinic.trainers import GENERIC, tables

GROUPS_GONE = (
    0.91  # zero-variance share at which no gradient is left: going back comes first (DESIGN.md 4.8)
)


def advise(answer: Diagnosis, facts: Facts) -> Diagnosis:
    """Add the first action, the others in order, and the checkpoint."""
    main = answer.main
    if main is None:
        return replace(answer, notes=(*answer.notes, *disputes(answer, facts)))
    card = cards()[main.failure]
    # A treatment that the evidence puts first stands at its usual place as well: once is enough.
    once: dict[object, Action] = {}
    # What would come before the first action, or is known to be missed, had this trainer such a setting.
    lacking: list[str] = []
    known = tables()[answer.run.trainer.name].without
    for treatment in card.treatments:
        found = action(treatment, main, facts)
        if found is None and lacks_knob(treatment, main, facts):
            lacking += [treatment.knob] if not once or treatment.knob in known else []
        if found is not None:
            once.setdefault((found.kind, found.knob, str(found.new)), found)
    ordered = list(once.values())
    back = (
        roll_back_to(answer.run, main.onset.low if main.onset else None)
        if card.restart == "must" and main.severity != "caution"
        else None
    )
    answer = replace(
        answer,
        first_action=ordered[0] if ordered else None,
        then=tuple(ordered[1:]),
        roll_back_to=back,
        smoke=smoke(answer, back) if ordered else None,
        notes=(*answer.notes, *(_no_knob(answer.run, knob) for knob in dict.fromkeys(lacking))),
    )
    return replace(answer, notes=(*answer.notes, *disputes(answer, facts)))


def _no_knob(run: Run, knob: str) -> Note:
    """Why another treatment comes first: this trainer has no such setting."""
    why = tables()[run.trainer.name].without.get(knob)
    said = {
        lang: (why.zh if lang == "zh" else why.en)
        if why is not None
        else say_in("advise", "no-knob", lang, trainer=run.trainer.title, knob=knob)
        for lang in LANGUAGES
    }
    return Note(None, "note.no-knob", said)


def how_to_log(run: Run, role: str) -> Missing:
    """How this run's trainer logs a role that is missing."""
    for name in (run.trainer.name, GENERIC):
        hint = tables()[name].log.get(role)
        if hint is not None:
            how = line_in(hint.how, tables()[name].style)
            return Missing(role, how, {"en": hint.how_en, "zh": hint.how_zh})
    return Missing(role)


__all__ = ["Action", "advise", "how_to_log"]
