"""How a rescue went: a summary for a terminal, or JSON."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from klinic import __version__
from klinic.compare.settings import home
from klinic.compare.smoke import BY_STEP
from klinic.diagnosis import Diagnosis
from klinic.render import _smoke
from klinic.render import _words as words
from klinic.render._layout import columns, pad, wrap
from klinic.render.as_json import encoded
from klinic.rescue.outcome import Attempt, Outcome
from klinic.rescue.plan import Treatment
from klinic.text import figure, say, say_in

COLOURS = {"rescued": "32", "not-rescued": "31", "person": "33", "planned": "36"}
_say = partial(say_in, "rescue")
_say_smoke = partial(say_in, "compare")


def render(found: Outcome, form: str, lang: str, colour: bool = False) -> str:
    """One rescue."""
    return encoded(as_dict(found, lang)) if form == "json" else _text(found, lang, colour)


def as_dict(found: Outcome, lang: str) -> dict[str, Any]:
    """The rescue as JSON has it."""
    made, main = found.plan, found.diagnosis.main
    return {
        "schema_version": 1,
        "klinic_version": __version__,
        "lang": lang,
        "status": found.status,
        "run": found.diagnosis.run.name,
        "failure": main.failure if main else None,
        "folder": str(found.folder) if found.folder else None,
        "go_back": None
        if made is None
        else {
            "checkpoint": made.checkpoint.path if made.checkpoint else None,
            "step": made.start,
            "before_onset": made.before_onset,
        },
        "steps": made.steps if made else None,
        "attempts": [_attempt(a, lang) for a in found.attempts],
        "planned": [_treatment(t, lang) for t in made.treatments] if made else [],
    }


def _treatment(t: Treatment, lang: str) -> dict[str, Any]:
    return {
        "change": t.text,
        "kind": t.action.kind,
        "knob": t.action.knob,
        "flag": t.action.flag,
        "new": t.action.new,
        "how": t.how,
        "why": say(t.action.why, lang),
    }


def _attempt(a: Attempt, lang: str) -> dict[str, Any]:
    after = a.after
    return {
        **_treatment(a.treatment, lang),
        "outcome": a.outcome,
        "smoke": _smoke.as_dict(a.verdict, lang) if a.verdict else None,
        "after": None
        if after is None
        else {"status": after.status, "failure": after.main.failure if after.main else None},
        "folder": str(a.folder) if a.folder else None,
    }


def outcome(a: Attempt, lang: str) -> str:
    """What came of an attempt, in a word or two."""
    return _say(f"rescue.outcome.{a.outcome}", lang)


def named(t: Treatment, lang: str) -> str:
    """A treatment as a person reads it: the change, or what to do."""
    return t.text if t.how == "set" else f"{t.text} ({say(t.action.why, lang)})"


def _text(found: Outcome, lang: str, colour: bool) -> str:
    main, made = found.diagnosis.main, found.plan
    if main is None or made is None:
        status = say(f"status.{found.diagnosis.status}", lang)
        key = "healthy" if main is None else "caution"
        return _say(f"rescue.{key}", lang, status=status, failure=main and main.failure) + "\n"
    head = _say(f"rescue.{found.status}", lang)
    right = _say("rescue.of", lang, failure=main.failure, name=found.diagnosis.run.name)
    shown = f"\x1b[1;{COLOURS[found.status]}m{head}\x1b[0m" if colour else head
    lines = [shown + " " * max(2, 80 - columns(head) - columns(right)) + right]
    lines += [wrap(line, "  ", "    ") for line in _plan(found, lang)]
    lines.append("")
    tried = {a.treatment.name for a in found.attempts}
    for a in found.attempts:
        lines += _tried(a, lang)
    if found.status in ("planned", "not-rescued"):
        word = _say("rescue.outcome.untried", lang) if found.status != "planned" else None
        for t in made.treatments:
            if t.name not in tried:
                lines += _line(t, word, lang)
    lines += ["", *(wrap(line, "  ", "    ") for line in _where(found, lang))]
    lines += _hints(found, lang)
    return "\n".join(lines).rstrip() + "\n"


def _plan(found: Outcome, lang: str) -> list[str]:
    made = found.plan
    assert made is not None
    point, ran = made.checkpoint, any(a.verdict is not None for a in found.attempts)
    lines = []
    if point is None:
        lines.append(_say("rescue.scratch", lang))
    else:
        key = "back" if made.before_onset else "back_late"
        if made.before_onset and not ran:
            key = "back_planned"
        lines.append(_say(f"rescue.{key}", lang, name=point.name, step=point.step))
    main = found.diagnosis.main
    by_curve = made.toward is not None and main is not None and main.failure not in BY_STEP
    metric = words.metric_title(made.toward.metric, lang) if made.toward and by_curve else None
    sort = "steps_plain" if metric is None else "steps" if ran else "steps_planned"
    said = _say(f"rescue.{sort}", lang, steps=made.steps, metric=metric)
    if made.steps > made.asked and made.shows:
        said += ("" if lang == "zh" else " ") + _say("rescue.shows_late", lang, asked=made.asked)
    lines.append(said)
    if not made.shows:
        lines.append(say("text.mind", lang, text=_say("rescue.hides", lang)))
    return lines


def _line(t: Treatment, word: str | None, lang: str) -> list[str]:
    number = t.name.partition("-")[0] if t.name[0].isdigit() else "-"
    text = named(t, lang)
    if word is None:
        return [wrap(f"{number}  {text}", "  ", "     ")]
    first = f"  {number}  {text}"
    if columns(first) + 2 + columns(word) <= 80:
        return [pad(first, min(40, 78 - columns(word))) + "  " + word]
    return [wrap(f"{number}  {text}", "  ", "     "), f"     {word}"]


def _tried(a: Attempt, lang: str) -> list[str]:
    lines = _line(a.treatment, outcome(a, lang), lang)
    verdict = a.verdict
    details = []
    if verdict is None and a.outcome == "not-arrived":
        details.append(_say_smoke("smoke.reason.not-arrived", lang))
    if a.outcome == "no-effect":
        details.append(_say("rescue.no_effect", lang))
    if verdict is not None:
        if a.outcome == "rescued" and verdict.verdict != "better":
            details.append(_say("rescue.longer", lang))
        elif verdict.verdict != "better":
            details.append(_smoke.reason(verdict, lang))
        seen = verdict.mover
        if seen is not None and verdict.reason not in ("not-arrived", "past", "not-past"):
            details.append(
                _say(
                    "rescue.figures",
                    lang,
                    metric=words.metric_title(seen.metric, lang),
                    new=figure(seen.new),
                    control=figure(seen.control),
                    z=f"{abs(seen.z):.1f}",
                )
            )
        if verdict.broke:
            broke = ", ".join(words.metric_title(e.metric, lang) for e in verdict.broke)
            details.append(_say("rescue.broke", lang, list=broke))
    if a.after is not None:
        details.append(
            _say(
                "rescue.went_on",
                lang,
                step=a.after.run.last,
                status=_after(a.after, verdict.failure if verdict else None, lang),
            )
        )
    return [*lines, *(wrap(line, "     ", "       ") for line in details)]


def _after(after: Diagnosis, failure: str | None, lang: str) -> str:
    if after.main is None:
        return say(f"status.{after.status}", lang)
    if after.status == "failing":
        key = "failing_again" if after.main.failure == failure else "other"
        return _say(f"rescue.{key}", lang, failure=after.main.failure)
    return f"{say(f'status.{after.status}', lang)} ({after.main.failure})"


def _where(found: Outcome, lang: str) -> list[str]:
    if found.folder is None or found.status == "planned":
        return []
    lines = []
    on = next((a.folder for a in found.attempts if a.outcome == "rescued" and a.folder), None)
    if on is not None:
        lines.append(_say("rescue.on_run", lang, folder=_near(on)))
    lines.append(_say("rescue.folder", lang, folder=_near(found.folder)))
    return lines


def _hints(found: Outcome, lang: str) -> list[str]:
    made, main = found.plan, found.diagnosis.main
    assert made is not None and main is not None
    values = {
        "failure": main.failure,
        "name": made.checkpoint.name if made.checkpoint else "-",
    }
    lines = [wrap(_say(f"rescue.hint.{found.status}", lang, **values), "", "  ")]
    other = next((a for a in found.attempts if a.outcome == "other" and a.folder), None)
    if found.status == "not-rescued" and other is not None and other.folder is not None:
        lines = [wrap(_say("rescue.hint.other", lang), "", "  ")]
        lines.append(f"  klinic rescue {_near(other.folder)}")
    if found.status != "rescued" and any(a.outcome == "failed" for a in found.attempts):
        lines = [wrap(_say("rescue.hint.failed", lang), "", "  ")]
    if found.status == "person":
        # A command is never broken over two lines.
        lines.append(f"  klinic rescue {_near(home(found.diagnosis.run))} --continue NEWRUN")
        if any(t.fix for t in made.treatments):
            lines.append(wrap(_say("rescue.hint.person_fix", lang), "", "  "))
    return lines


def _near(place: Path) -> str:
    """A path as the user would type it: relative where it lies below the current folder."""
    try:
        return str(place.resolve().relative_to(Path.cwd()))
    except ValueError:
        return os.path.normpath(place)
