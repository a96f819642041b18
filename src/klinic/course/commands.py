"""The commands of going and looking; each takes the desk and what was typed behind it, and returns text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from klinic.course import look
from klinic.course.answers import letters
from klinic.course.desk import Desk
from klinic.course.plan import PARTS, Task, following, ids, tasks
from klinic.course.progress import Progress
from klinic.course.scenes import Log
from klinic.course.words import flowed, hints
from klinic.errors import BadUsage, did_you_mean
from klinic.render._layout import wrap

PAGES = 4


def help_(desk: Desk, words: Sequence[str]) -> str:
    """Every command."""
    return desk.say("help.all") + "\n\n" + advice(desk)


def goals(desk: Desk, words: Sequence[str]) -> str:
    """What there is to learn in this round, done or not, and where the learner stands."""
    turn = desk.progress.turn
    lines = [desk.say(f"goals.round{turn}")]
    for part in PARTS:
        lines += ["", desk.say(f"part.{part}"), flowed("- " + desk.say(f"goals.learn.{part}"))]
        for one in tasks(turn):
            if one.part != part:
                continue
            mark = "x" if desk.progress.done.get(f"{turn}/{one.id}") else " "
            here = f"   <- {desk.say('goals.here')}" if one.id == desk.progress.at else ""
            lines.append(f"  [{mark}] {one.typed:8} {desk.say(f'title.{one.id}')}{here}")
    return "\n".join(lines) + "\n\n" + advice(desk)


def next_(desk: Desk, words: Sequence[str]) -> str:
    """Go on: the next page of the first exercise, else the next exercise that is not done."""
    progress = desk.progress
    if desk.task.kind == "read" and not desk.done:
        return read(desk, [str(min(PAGES, _page(desk) + 1))])
    if not progress.seen.get(progress.key()):
        return show(desk)
    found = following(progress.turn, progress.at, progress.done)
    if found is None:
        return _finished(desk) if desk.done else show(desk)
    progress.at = found.id
    return show(desk)


def _finished(desk: Desk) -> str:
    if desk.progress.turn == 1:
        return desk.say("shell.round_done", turn=1) + "\n" + desk.type("round 2")
    return desk.say("shell.all_done")


def _page(desk: Desk) -> int:
    return sum(desk.progress.seen.get(f"page/{i}", False) for i in range(1, PAGES + 1))


def read(desk: Desk, words: Sequence[str]) -> str:
    """One page of the introduction; the first of them with the healthy run."""
    number = _number(desk, words[0], "read 3") if words else 1
    if not 1 <= number <= PAGES:
        raise BadUsage(desk.say("error.task", word=f"read {number}"), "read", f"read 1-{PAGES}")
    progress = desk.progress
    progress.at = "read" if progress.turn == 1 else progress.at
    progress.seen[f"page/{number}"] = True
    for i in range(1, number):
        progress.seen[f"page/{i}"] = True
    text = flowed(desk.say(f"page.{number}").lstrip("\n"))
    if number < PAGES:
        return text + "\n\n" + desk.type("next" if progress.turn == 1 else f"read {number + 1}")
    if progress.turn == 1:
        progress.done[progress.key("read")] = True
        progress.seen[progress.key("read")] = True
    return text + "\n\n" + desk.type("next")


def go(kind: str) -> Callable[[Desk, Sequence[str]], str]:
    """The command that goes to an exercise of one kind: ``pair 2``, ``lab``."""

    def command(desk: Desk, words: Sequence[str]) -> str:
        if kind == "lab" and words and words[0].lower() == "new":
            from klinic.course.labwork import renew

            desk.progress.at = "lab"
            return renew(desk)
        wanted = f"{kind}-{words[0]}" if words else kind
        if not words and wanted not in ids():
            wanted = next(
                (t.id for t in tasks(1) if t.kind == kind and not _is_done(desk, t)), f"{kind}-1"
            )
        if wanted not in ids():
            raise BadUsage(
                desk.say("error.task", word=wanted.replace("-", " ")),
                kind,
                did_you_mean(wanted, ids()).replace("-", " ") or desk.say("error.task_hint"),
            )
        if wanted not in [t.id for t in tasks(desk.progress.turn)]:
            desk.progress.turn = 1  # questions are asked in round one only
        desk.progress.at = wanted
        return show(desk)

    return command


def _is_done(desk: Desk, one: Task) -> bool:
    return desk.progress.done.get(f"{desk.progress.turn}/{one.id}", False)


def show(desk: Desk) -> str:
    """The current exercise: what is asked, and its curves."""
    desk.progress.seen[desk.progress.key()] = True
    one = desk.task
    if one.kind == "read":
        return read(desk, [str(max(1, _page(desk)))])
    head = f"{one.typed}: {desk.say(f'title.{one.id}')}"
    if one.kind == "lab":
        from klinic.course.labwork import show as show_lab

        return head + "\n" + show_lab(desk)
    if one.kind == "quiz":
        from klinic.course.quiz import question

        return head + "\n\n" + question(desk) + "\n\n" + advice(desk)
    parts = [head, flowed(desk.say(desk.about("ask")))]
    logs = desk.logs()
    real = any(not log.drawn for log in logs)
    parts.append(flowed(desk.say("real.note" if real else "real.drawn")))
    for log in logs:
        parts.append(f"{_titled(desk, log)}\n{look.drawing(log)}")
    if desk.done:
        parts.append(desk.say("answer.settled"))
    return "\n\n".join(parts) + "\n\n" + advice(desk)


def _titled(desk: Desk, log: Log) -> str:
    """The log's name; for a real one also how many samples stand behind a point, which it does not log."""
    config = dict(log.config)
    if not config:
        return log.name
    return desk.say("log.batch", name=log.name, n=config["prompts"] * config["group"])


def advice(desk: Desk) -> str:
    """What to type next, where the learner stands."""
    one = desk.task
    if one.kind == "read" and not desk.done:
        return desk.type("next")
    if not desk.progress.seen.get(desk.progress.key()):
        return desk.type(one.typed)
    if one.kind == "lab":
        from klinic.course.labwork import advice as lab_advice

        return lab_advice(desk)
    if desk.done:
        return desk.type("next")
    if one.kind == "quiz":
        return desk.type("answer a", "hint")
    name = one.logs[-1] if one.logs else ""
    example = "answer a b" if len(one.logs) == 2 else "answer a"
    return desk.type(f"cat {name}", "hint", "words", example)


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
    """Rows of a log: all of it thinned out, or every step between two."""
    named = [word for word in words if not word.isdigit()]
    bounds = [int(word) for word in words if word.isdigit()]
    log = desk.log(named[0] if named else None)
    first = bounds[0] if bounds else None
    last = bounds[1] if len(bounds) > 1 else (first + 20 if first is not None else None)
    text = look.table(log, first, last)
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
        from klinic.course.labwork import plotted

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


def hint(desk: Desk, words: Sequence[str]) -> str:
    """The next of the graded hints; the first never gives the answer away."""
    progress = desk.progress
    one = desk.task
    if one.kind == "lab":
        from klinic.course.labwork import hint as lab_hint

        return lab_hint(desk)
    known = hints(desk.about("real_hints"), desk.lang) if progress.turn == 2 else []
    known = known or hints(desk.about("hints"), desk.lang)
    if not known:
        return desk.say("hint.none") + "\n" + advice(desk)
    n = min(progress.hints.get(progress.key(), 0) + 1, len(known))
    progress.hints[progress.key()] = n
    text = f"{desk.say('hint.grade', n=n, all=len(known))}\n{flowed(known[n - 1])}"
    if n == len(known) and one.kind != "quiz":
        text += "\n" + desk.say("hint.last", what="diff" if one.kind == "pair" else "diagnose")
    return text + "\n\n" + advice(desk)


def words_(desk: Desk, words: Sequence[str]) -> str:
    """Everything that can be answered."""
    from klinic.text import page

    lines = [desk.say("words.head")]
    for letter, slug in letters().items():
        title = desk.say("words.healthy") if slug == "healthy" else page(slug, desk.lang).title
        lines.append(f"  {letter}  {slug:22} {title}")
    return "\n".join(lines) + "\n\n" + advice(desk)


def round_(desk: Desk, words: Sequence[str]) -> str:
    """Go to round one or two."""
    if not words or words[0] not in ("1", "2"):
        raise BadUsage(desk.say("error.round"), "round", "round 2")
    progress = desk.progress
    progress.turn = int(words[0])
    open_ = [t for t in tasks(progress.turn) if not _is_done(desk, t)]
    progress.at = (open_ or list(tasks(progress.turn)))[0].id
    return goals(desk, [])


def reset(desk: Desk, words: Sequence[str]) -> str:
    """Forget all progress; asked twice, since it cannot be taken back."""
    if [word.lower() for word in words] not in (["yes"], ["是"]):
        raise BadUsage(desk.say("error.reset"), "reset", f"{desk.prefix}reset yes")
    desk.progress = Progress()
    return desk.say("reset.done") + "\n" + desk.type("next")


def lang(desk: Desk, words: Sequence[str]) -> str:
    """Speak the other language from here on."""
    wanted = words[0].lower() if words else ("zh" if desk.lang == "en" else "en")
    if wanted not in ("en", "zh"):
        raise BadUsage(desk.say("error.task", word=wanted), "lang", "lang en, lang zh")
    desk.lang = wanted
    return desk.say("shell.language") + "\n" + advice(desk)


def quit_(desk: Desk, words: Sequence[str]) -> str:
    """Leave the shell; progress is kept."""
    desk.leave = True
    return desk.say("shell.bye")


def _number(desk: Desk, word: str, example: str) -> int:
    if not word.lstrip("-").isdigit():
        raise BadUsage(
            desk.say("error.number", word=word),
            desk.task.typed,
            desk.say("error.number_hint", example=example),
        )
    return int(word)
