"""The commands of going and looking; each takes the desk and what was typed behind it, and returns text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from klinic.course import look
from klinic.course.answers import letters
from klinic.course.desk import Desk
from klinic.course.plan import PARTS, Task, following, ids, tasks
from klinic.course.progress import Progress
from klinic.course.scenes import Log
from klinic.course.words import flowed, has, hints
from klinic.errors import BadUsage, did_you_mean

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
    logs = desk.logs()
    real = any(not log.drawn for log in logs)
    asked = desk.about("real_ask" if real and has(desk.about("real_ask"), desk.lang) else "ask")
    parts = [head, flowed(desk.say(asked))]
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
        return desk.type(desk.answer_form(), "hint") + "\n" + desk.answer_example()
    looks = [f"cat {one.logs[-1]}", "legend", "hint", "words"]
    return desk.type(*looks, desk.answer_form()) + "\n" + desk.answer_example()


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
    text = graded(desk, progress.key(), known)
    if progress.hints[progress.key()] == len(known) and one.kind != "quiz":
        text += "\n" + desk.say("hint.after", what="diff" if one.kind == "pair" else "diagnose")
    return text + "\n\n" + advice(desk)


def graded(desk: Desk, key: str, known: Sequence[str]) -> str:
    """The next hint under a key; the last one says so, and stays."""
    count = desk.progress.hints
    n = count[key] = min(count.get(key, 0) + 1, len(known))
    grade = "hint.last" if n == len(known) else "hint.grade"
    return f"{desk.say(grade, n=n, all=len(known))}\n{flowed(known[n - 1])}"


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
        raise BadUsage(desk.say("error.reset"), "reset", desk.call("reset yes"))
    desk.progress = Progress()
    return desk.say("reset.done") + "\n" + desk.type("next")


def lang(desk: Desk, words: Sequence[str]) -> str:
    """Speak the other language from here on."""
    wanted = words[0].lower() if words else ("zh" if desk.lang == "en" else "en")
    if wanted not in ("en", "zh"):
        raise BadUsage(desk.say("error.task", word=wanted), "lang", "lang en, lang zh")
    desk.lang = wanted
    if desk.prefix:  # every command is a process of its own: only the option can carry it on
        desk.given["--lang"] = wanted
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
