"""Answers and what is open only after one: the pair side by side, and klinic's own view."""

from __future__ import annotations

import re
from collections.abc import Sequence

from klinic.course import order
from klinic.course.answers import slugs
from klinic.course.desk import Desk
from klinic.course.judge import agrees, contradiction, curve, diagnosed, right
from klinic.course.scenes import Log
from klinic.course.scenes import log as log_named
from klinic.course.words import flowed, has
from klinic.errors import BadUsage
from klinic.render import _words as words_of
from klinic.render._layout import columns, pad
from klinic.text import figure
from klinic.vitals import VITALS


def answer(desk: Desk, words: Sequence[str]) -> str:
    """Judge an answer; a wrong one names the curve that contradicts it."""
    kind = desk.task.kind
    desk.failed = False
    if not words and kind != "read":
        raise BadUsage(desk.say("error.empty"), "answer", desk.say("error.words"))
    if kind == "lab":
        from klinic.course.labwork import answer as lab_answer

        return lab_answer(desk, words)
    if kind == "read":
        raise BadUsage(desk.say("error.no_answer"), "read", desk.call("next"))
    if kind == "quiz":
        from klinic.course.quiz import answer as quiz_answer

        text, good = quiz_answer(desk, words)
        return _settle(desk, words, good, text)
    given = slugs(words, desk.lang)
    logs = desk.logs()
    minded = [word for word in given if word in VITALS]
    named = [word for word in given if word not in VITALS]
    if len(named) != len(logs) or (minded and not logs[0].mind):
        raise BadUsage(
            desk.say(
                "error.count", n=len(logs), logs=" ".join(o.name for o in logs), given=len(given)
            ),
            "answer",
            desk.say("error.count_hint") if len(logs) > 1 else desk.say("error.words"),
        )
    lines, good = [], True
    for log, slug in zip(logs, named, strict=True):
        lines.append(flowed("- " + _verdict(desk, log, slug)))
        good &= right(log, slug)
    if good and logs[0].mind:
        said, good = _minding(desk, logs[0], minded)
        lines += [flowed(said)] if said else []
    text = _settle(desk, named + minded, good, "\n".join(lines))
    if named and not minded and logs[0].mind and right(logs[0], named[0]):
        desk.failed = False  # half an answer, but nothing wrong in it
    return text


def _verdict(desk: Desk, log: Log, slug: str) -> str:
    if slug == log.answer:
        return desk.say("answer.right", log=log.name, slug=slug)
    if right(log, slug):
        return desk.say("answer.also", log=log.name, slug=slug, precise=log.answer)
    why = contradiction(log, diagnosed(desk, log), slug, desk.lang)
    return desk.say("answer.wrong", log=log.name, slug=slug, why=why)


def _minding(desk: Desk, log: Log, minded: Sequence[str]) -> tuple[str, bool]:
    """The second half of a healthy scene: the one curve to mind."""
    if not minded:
        return desk.say(desk.about("mind")), False
    if log.mind in minded:
        return "", True
    levels = curve(log, diagnosed(desk, log), desk.lang, (minded[0],))
    return desk.say("answer.mind_wrong", curve=minded[0], levels=levels), False


def _settle(desk: Desk, given: Sequence[str], good: bool, text: str) -> str:
    """Keep the try; explain if it was right."""
    progress = desk.progress
    progress.tries.setdefault(progress.key(), []).append(" ".join(given))
    desk.failed = not good
    if not good:
        return text + "\n\n" + _retry(desk)
    progress.done[progress.key()] = True
    if desk.task.kind != "quiz":
        text += "\n\n" + explanation(desk)
    after = {"pair": ["diff", "diagnose", "next"], "scene": ["diagnose", "next"]}
    return text + "\n\n" + desk.type(*after.get(desk.task.kind, ["next"]))


def _retry(desk: Desk) -> str:
    tried = desk.progress.tries[desk.progress.key()][-1].split()
    minding = desk.task.kind == "scene" and desk.logs()[0].mind and right(desk.logs()[0], tried[0])
    form = f"answer healthy {desk.slot('curve')}" if minding else desk.answer_form()
    again = ["hint", form]
    if desk.task.kind == "pair":
        again.append("diff")
    elif desk.task.kind == "scene":
        again.append("diagnose")
    return desk.type(*again)


def explanation(desk: Desk) -> str:
    """Why it is what it is, what decides in these very logs, and what one does."""
    logs = desk.logs()
    # The texts call a pair's logs by their order in round one; round two shows some pairs the other way round.
    drawn = [log_named(log.name, 1).answer for log in logs] if len(logs) > 1 else []
    names = {
        str(i): next((log.name for log in logs if right(log, slug)), "")
        for i, slug in enumerate(drawn, 1)
    }
    lines = []
    for log in logs:
        told = curve(log, diagnosed(desk, log), desk.lang)
        lines.append(
            flowed("- " + desk.say("judge.in_log", log=log.name, slug=log.answer, curve=told))
        )
    why = "real" if desk.progress.turn == 2 and has(desk.about("real"), desk.lang) else "why"
    lines += [
        "",
        flowed(desk.say(desk.about(why), **names)),
        "",
        *_acts(desk, logs, names),
    ]
    first = [order.why_first(desk, log.name, diagnosed(desk, log)) for log in logs]
    lines += ["", *map(flowed, filter(None, first))] if any(first) else []
    return "\n".join(lines)


def _acts(desk: Desk, logs: Sequence[Log], names: dict[str, str]) -> list[str]:
    """What one does, log by log in the order shown."""
    if len(logs) == 1:
        return [flowed(desk.say(desk.about("act")))]
    told = {name: desk.say(f"{desk.about('act')}.{i}") for i, name in names.items()}
    colon = "：" if desk.lang == "zh" else ": "
    return [flowed(f"- {log.name}{colon}{told[log.name]}") for log in logs if log.name in told]


def diff(desk: Desk, words: Sequence[str]) -> str:
    """The two logs of a pair side by side; a star marks what tells them apart."""
    if desk.task.kind != "pair":
        raise BadUsage(desk.say("error.pair"), desk.task.typed, desk.say("error.pair_hint"))
    _answered(desk, "diff")
    from klinic.facts import Facts

    one, two = desk.logs()
    facts = [Facts(diagnosed(desk, log).run) for log in (one, two)]
    rows: list[tuple[str, ...]] = [("", one.name, two.name)]
    for role in (*VITALS, "trunc", "grad_norm"):
        shapes = [f.shape(role) for f in facts]
        cells = [f"{figure(s.before)} -> {figure(s.after)}" if s else "-" for s in shapes]
        star = "*" if role in (*one.tells, *two.tells) else " "
        rows.append((f"{star} {words_of.metric_title(role, desk.lang)}", *cells))
    widths = [max(columns(row[i]) for row in rows) for i in range(3)]
    table = [
        "  " + "   ".join(pad(cell, w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if not desk.done:
        table += [
            "",
            desk.say("answer.solution", list=f"{one.name} {one.answer}, {two.name} {two.answer}"),
        ]
    more = "next" if desk.done else f"answer {one.answer} {two.answer}"
    return "\n".join([*table, "", explanation(desk), "", desk.type(more)])


def diagnose(desk: Desk, words: Sequence[str]) -> str:
    """klinic's own diagnosis of the logs, and whether learner and tool agree."""
    if desk.task.kind == "lab":
        from klinic.course.hidden import answered_lab

        if not answered_lab(desk):
            raise BadUsage(desk.say("answer.first", what="diagnose"), "diagnose", "answer")
    else:
        _answered(desk, "diagnose")
    from klinic.render.text import render

    logs = [desk.log(words[0])] if words else desk.logs()
    if not logs:
        raise BadUsage(desk.say("log.none"), desk.task.typed, desk.say("error.task_hint"))
    all_logs = [log.name for log in desk.logs()]
    tries = desk.progress.tries.get(desk.progress.key(), [""])[-1].split()
    parts = []
    for log in logs:
        found = diagnosed(desk, log)
        yours = dict(zip(all_logs, tries, strict=False)).get(log.name, "")
        text = re.sub(r"\n{3,}", "\n\n", render([found], desk.lang))
        if agrees(log, found):
            same = right(log, yours)
            text += "\n" + desk.say("judge.agree" if same else "judge.disagree", yours=yours)
        else:
            text += "\n" + flowed(desk.say("judge.tool_differs", answer=log.answer))
        parts.append(text)
    return "\n\n".join(parts) + "\n\n" + _after_diagnosis(desk)


def _after_diagnosis(desk: Desk) -> str:
    if desk.task.kind == "lab":
        from klinic.course.hidden import reached, stage
        from klinic.course.labwork import advice

        note = "" if reached(stage(desk), "smoke") else flowed(desk.say("lab.masked.note")) + "\n\n"
        return note + advice(desk)
    return desk.type("next") if desk.done else desk.type(desk.answer_form(), "hint")


def _answered(desk: Desk, what: str) -> None:
    if not desk.answered:
        raise BadUsage(desk.say("answer.first", what=what), what, desk.call(desk.answer_form()))
