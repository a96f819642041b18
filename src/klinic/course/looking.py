"""The commands of looking at logs; nothing here judges before the learner has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from klinic.course import look
from klinic.course.commands import advice
from klinic.course.desk import Desk
from klinic.course.words import flowed
from klinic.errors import BadUsage
from klinic.render._layout import wrap


def ls(desk: Desk, words: Sequence[str]) -> str:
    """The logs of the exercise."""
    logs = desk.logs()
    if not logs:
        return desk.say("log.none") + "\n" + advice(desk)
    lines = []
    for log in logs:
        text = desk.say(
            "log.ls",
            name=log.name,
            n=len(log.rows),
            first=log.steps[0],
            last=log.steps[-1],
            keys=" ".join(log.keys),
        )
        lines.append(flowed("- " + text))
        if log.source and desk.done:
            lines.append(wrap(desk.say("real.made", by=log.source), "  ", "    "))
    return "\n".join(lines) + "\n\n" + desk.type(f"cat {logs[0].name}", "plot")


def cat(desk: Desk, words: Sequence[str]) -> str:
    """Rows of a log: all of it thinned out, or every step between two; of the columns named, where any are."""
    known = {look.short(key): key for log in desk.logs() for key in log.keys}
    wanted = [known.get(word, word) for word in words if word in known or word in known.values()]
    named = [w for w in words if not w.isdigit() and known.get(w, w) not in wanted]
    bounds = [int(word) for word in words if word.isdigit()]
    log = desk.log(named[0] if named else None)
    first = bounds[0] if bounds else None
    last = bounds[1] if len(bounds) > 1 else (first + 20 if first is not None else None)
    text = look.table(log, first, last, wanted)
    if first is None and len(log.rows) > look.ROWS:
        every = -(-len(log.rows) // (look.ROWS - 1))
        text += "\n\n" + desk.say("log.rows", every=every, name=log.name)
    return f"{log.name}\n{text}\n\n{advice(desk)}"


def plot(desk: Desk, words: Sequence[str]) -> str:
    """Curves in the terminal, and a picture: before an answer without any judgement in it."""
    from klinic.course.picture import picture

    out = None
    rest = list(words)
    if "-o" in rest:
        at = rest.index("-o")
        out = Path(rest[at + 1]) if at + 1 < len(rest) else None
        del rest[at : at + 2]
    logs = [desk.log(rest[0])] if rest else desk.logs()
    if not logs:
        raise BadUsage(desk.say("log.none"), desk.task.typed, desk.say("error.task_hint"))
    parts = []
    for log in logs:
        place = picture(desk, log, out if len(logs) == 1 else None)
        parts.append(f"{log.name}\n{look.drawing(log)}\n{desk.say('log.picture', place=place)}")
    if not desk.answered:
        parts.append(desk.say("log.unjudged"))
    if desk.task.kind == "lab":
        from klinic.course.hidden import plotted

        plotted(desk)
    return "\n\n".join(parts) + "\n\n" + advice(desk)


def samples(desk: Desk, words: Sequence[str]) -> str:
    """What the policy wrote near the end."""
    logs = [desk.log(words[0])] if words else desk.logs()
    parts = []
    for log in logs:
        told = look.samples(log) or "  " + desk.say("log.samples_none", name=log.name)
        parts.append(f"{log.name}\n{told}")
    return "\n\n".join(parts or [desk.say("log.none")]) + "\n\n" + advice(desk)


def save(desk: Desk, words: Sequence[str]) -> str:
    """Write the logs of the exercise as files, for ``klinic diagnose`` or the learner's own tools."""
    from klinic.course.scenes import save as write

    folder = Path(words[0]) if words else Path()
    try:
        places = [write(log, folder) for log in desk.logs()]
    except OSError:
        raise BadUsage(
            desk.say("error.folder"), str(folder), desk.say("error.folder_hint")
        ) from None
    return "\n".join(desk.say("log.saved", place=place) for place in places) or desk.say("log.none")
