"""The last exercise: a real run with a hidden fault, made by the lab; every step of the procedure is checked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from klinic.course import labcheck
from klinic.course.answers import slugs
from klinic.course.commands import graded
from klinic.course.desk import Desk
from klinic.course.hidden import (
    STAGES,
    STEPS,
    folder,
    full_diagnosis,
    hidden,
    lab_diagnosis,
    lab_log,
    label,
    reached,
    stage,
    train,
)
from klinic.course.order import why_first
from klinic.course.scenes import Log
from klinic.course.words import flowed, hints
from klinic.errors import BadUsage


def show(desk: Desk) -> str:
    """The state of the exercise; trains the hidden run where there is none."""
    if folder(desk) is None:
        train(desk)
    now = stage(desk)
    lines = [flowed(desk.say("lab.intro", steps=STEPS, place=folder(desk))), ""]
    for number, one in enumerate(STAGES, 1):
        done = one != now and reached(now, one)
        lines.append(f"  [{'x' if done else ' '}] {number} {desk.say(f'lab.step.{one}')}")
    return "\n".join(lines) + "\n\n" + advice(desk)


def advice(desk: Desk) -> str:
    """What to type next."""
    if folder(desk) is None:
        return desk.type("lab")
    step, value = desk.slot("step"), f"{desk.slot('name')}={desk.slot('value')}"
    again = f"change {value}"
    typed = {
        "plot": ("plot", "legend"),
        "answer": ("hint", "words", desk.answer_form()),
        "onset": (f"cat run {step} {step}", "hint", f"onset {step}"),
        "back": ("hint", f"back {step}"),
        "change": ("hint", again, f"change fix {desk.slot('group')}"),
        "smoke": (f"smoke {_needed(desk)}", again)
        if desk.progress.lab.get("steps")
        else ("smoke",),
        "judge": ("hint", "judge better", "judge worse", "judge inconclusive"),
        "done": ("diagnose", again, "lab new", "next"),
    }
    now = stage(desk)
    ask = flowed(desk.say(f"lab.ask.{now}", steps=_needed(desk)))
    return ask + "\n" + desk.type(*typed[now])


def _needed(desk: Desk) -> int:
    """Steps of a short run that meets the trouble from the checkpoint chosen; more where that could not tell."""
    if stage(desk) == "smoke" and desk.progress.lab.get("steps"):
        return labcheck.LONGEST
    return int(desk.progress.lab.get("need", labcheck.SMOKE))


def hint(desk: Desk) -> str:
    """A graded hint on the current step."""
    now = stage(desk)
    if folder(desk) is None or now == "done":
        return desk.say("hint.none") + "\n" + advice(desk)
    known = hints(f"lab.help.{now}.hints", desk.lang)
    if now == "answer":  # the last one names the curves of this very run
        tells = ", ".join(hidden(desk)["tells"])
        known = [*known, desk.say("lab.tells", curves=tells)]
    return graded(desk, f"{desk.progress.key()}/{now}", known) + "\n\n" + advice(desk)


def renew(desk: Desk) -> str:
    """Another hidden fault."""
    old = folder(desk)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    progress = desk.progress
    progress.lab = {"last": progress.lab.get("fault")}
    progress.done.pop(progress.key("lab"), None)
    progress.tries.pop(progress.key("lab"), None)
    for key in [key for key in progress.hints if key.startswith(progress.key("lab"))]:
        del progress.hints[key]
    return show(desk)


def answer(desk: Desk, words: Sequence[str]) -> str:
    """Name the failure."""
    from klinic.course.judge import contradiction, curve, right

    log = _ready(desk, "answer")
    given = slugs(words, desk.lang)
    if len(given) != 1:
        raise BadUsage(
            desk.say("error.count", n=1, logs="run", given=len(given)),
            "answer",
            desk.say("error.words"),
        )
    slug = given[0]
    desk.progress.tries.setdefault(desk.progress.key(), []).append(slug)
    found = lab_diagnosis(desk)
    dated = reached(
        stage(desk), "back"
    )  # before, the step at which a curve moves is what is asked next
    if not right(log, slug):
        desk.failed = True
        why = contradiction(log, found, slug, desk.lang, dated)
        return (
            flowed(desk.say("answer.wrong", log="run", slug=slug, why=why)) + "\n\n" + advice(desk)
        )
    if stage(desk) == "answer":
        desk.progress.lab["stage"] = "onset"
    seen = curve(log, found, desk.lang, (), dated)
    told = desk.say("judge.in_log", log="run", slug=log.answer, curve=seen)
    return flowed(told) + "\n\n" + advice(desk)


def onset(desk: Desk, words: Sequence[str]) -> str:
    """Name the step at which it begins."""
    log = _ready(desk, "onset")
    step = _step(desk, words, "onset 50")
    good, text = labcheck.onset(desk, log, label(desk), full_diagnosis(desk), step)
    return _checked(desk, good, text, "back", onset=step)


def back(desk: Desk, words: Sequence[str]) -> str:
    """Pick the checkpoint to go back to."""
    _ready(desk, "back")
    step = _step(desk, [word.removeprefix("checkpoint-") for word in words], "back 20")
    lab, place = desk.progress.lab, folder(desk)
    assert place is not None
    answer, dated = full_diagnosis(desk), lab["onset"]
    need, text = labcheck.checkpoint(desk, place, label(desk), answer, dated, step)
    if not need:
        return _checked(desk, False, text, "back")
    return _checked(desk, True, text, "change", checkpoint=step, need=need)


def change(desk: Desk, words: Sequence[str]) -> str:
    """Choose the one thing to change: a setting, or one group of settings to repair."""
    _ready(desk, "change")
    desk.progress.lab.pop("steps", None)
    changes, fix = labcheck.change(desk, words)
    text = desk.say("lab.changed", what=" ".join(words), step=desk.progress.lab["checkpoint"])
    return _checked(desk, True, text, "smoke", changes=changes, fix=fix, verdict=None)


def smoke(desk: Desk, words: Sequence[str]) -> str:
    """Run 20 steps (or as many as asked) from the checkpoint, with the change and without; each is drawn twice."""
    from klinic.course.wait import waiting
    from klinic.lab.runs import resume

    _ready(desk, "smoke")
    lab, place = desk.progress.lab, folder(desk)
    assert place is not None
    steps = _step(desk, words, "smoke 40") if words else _needed(desk)
    steps = min(labcheck.LONGEST, max(labcheck.SMOKE, steps))
    steps = min(steps, STEPS - lab["checkpoint"])
    checkpoint = place / f"checkpoint-{lab['checkpoint']}"
    for name in ("control-2", "change-1", "change-2"):
        shutil.rmtree(place / name, ignore_errors=True)
        changed = name.startswith("change")
        with waiting(desk.say("lab.smoking", steps=steps, name=name), steps) as told:
            resume(
                checkpoint,
                place / name,
                steps=steps,
                changes=lab["changes"] if changed else {},
                fix=lab["fix"] if changed else (),
                reseed=1 if name.endswith("2") else None,
                checkpoint_every=0,
                progress=told,
            )
    verdict, text = labcheck.verdict(desk, place, full_diagnosis(desk), lab["checkpoint"], steps)
    return _checked(desk, True, text, "judge", verdict=verdict, steps=steps)


def judge(desk: Desk, words: Sequence[str]) -> str:
    """Say whether the change helped; klinic's own verdict is shown beside."""
    _ready(desk, "judge")
    verdict = labcheck.word(desk, words)
    lab = desk.progress.lab
    good = verdict == lab["verdict"]
    place = folder(desk)
    assert place is not None
    text = labcheck.told(desk, place, full_diagnosis(desk), lab["checkpoint"], lab["steps"])
    text += "\n" + flowed(
        desk.say("lab.judged" if good else "lab.misjudged", said=verdict, truth=lab["verdict"])
    )
    if not good:
        return _checked(desk, False, text, "judge")
    if lab["verdict"] != "better":
        unsure, steps = lab["verdict"] == "inconclusive", lab["steps"]
        longer = unsure and steps < min(labcheck.LONGEST, STEPS - lab["checkpoint"])
        key = "longer" if longer else "enough" if unsure else "again"
        text += "\n" + flowed(desk.say(f"lab.{key}", steps=steps))
        return _checked(desk, True, text, "smoke" if longer else "change")
    desk.progress.done[desk.progress.key()] = True
    cures = hidden(desk)["cures"]
    first = why_first(desk, "run", full_diagnosis(desk), cures)
    if cures.startswith("change fix") and not lab["fix"]:
        text += "\n" + flowed(desk.say("lab.masks", cures=cures))
    what = label(desk)["what"][desk.lang]
    text += "\n" + flowed(
        desk.say("lab.was", what=what, at=label(desk)["inject_step"], cures=cures)
    )
    return _checked(desk, True, "\n".join(filter(None, [text, first])), "done")


def _ready(desk: Desk, wanted: str) -> Log:
    """The run, if the exercise has come to this step; earlier steps may be repeated."""
    if desk.task.kind != "lab":
        raise BadUsage(desk.say("lab.elsewhere", what=wanted), desk.task.typed, desk.call("lab"))
    log = lab_log(desk)
    if log is None:
        raise BadUsage(desk.say("lab.none"), wanted, desk.call("lab"))
    now = stage(desk)
    if now != "done" and STAGES.index(wanted) > STAGES.index(now):
        raise BadUsage(desk.say("lab.order", now=now), wanted, desk.say(f"lab.ask.{now}"))
    return log


def _step(desk: Desk, words: Sequence[str], example: str) -> int:
    if len(words) != 1 or not words[0].isdigit():
        raise BadUsage(
            desk.say("error.number", word=" ".join(words) or "-"),
            example.split()[0],
            desk.say("error.number_hint", example=example),
        )
    return int(words[0])


def _checked(desk: Desk, good: bool, text: str, then: str, **kept: Any) -> str:
    desk.failed = not good
    if good:
        desk.progress.lab.update(kept)
        desk.progress.lab["stage"] = then
    return flowed(text) + "\n\n" + advice(desk)
