"""Which curve stands for each of the eight vital signs, and what to say where none does."""

from __future__ import annotations

from klinic.advise import how_to_log
from klinic.diagnosis import Diagnosis
from klinic.render.as_json import how
from klinic.run import Run
from klinic.text import say
from klinic.vitals import STAND_INS, players


def player(run: Run, role: str) -> tuple[str, str | None]:
    """The role that is shown for a vital sign (its own, or a stand-in's) and the canonical name of its curve, if any."""
    for candidate in (role, *STAND_INS.get(role, ())):
        found = [name for name in players(candidate, run.curves) if len(run.curves[name].values)]
        if found:
            return candidate, found[0]
    return role, None


def absent(answer: Diagnosis, role: str, lang: str) -> list[str]:
    """Why a vital sign has no curve: the trainer's reason, or that it is not logged and how to log it."""
    run = answer.run
    names = players(role, run.absent)
    if names:
        en, zh = run.absent[names[0]]
        return [zh if lang == "zh" else en]
    advice = how(how_to_log(run, role), lang)
    said = [say("plot.not_logged", lang)]
    return [*said, say("text.how_to_log", lang, how=advice)] if advice else said
