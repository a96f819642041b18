"""The course in a terminal: one line, one command; the same commands work one at a time without it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from klinic.course import answering, commands, labwork, looking
from klinic.course.desk import Desk
from klinic.course.legend import legend
from klinic.course.plan import tasks
from klinic.course.progress import load, store
from klinic.errors import BadUsage, KlinicError, did_you_mean
from klinic.said import complaint

Command = Callable[[Desk, Sequence[str]], str]
COMMANDS: dict[str, Command] = {
    "goals": commands.goals,
    "next": commands.next_,
    "read": commands.read,
    "pair": commands.go("pair"),
    "scene": commands.go("scene"),
    "quiz": commands.go("quiz"),
    "lab": commands.go("lab"),
    "ls": looking.ls,
    "cat": looking.cat,
    "plot": looking.plot,
    "samples": looking.samples,
    "save": looking.save,
    "legend": legend,
    "hint": commands.hint,
    "words": commands.words_,
    "answer": answering.answer,
    "diff": answering.diff,
    "diagnose": answering.diagnose,
    "onset": labwork.onset,
    "back": labwork.back,
    "change": labwork.change,
    "smoke": labwork.smoke,
    "judge": labwork.judge,
    "round": commands.round_,
    "lang": commands.lang,
    "reset": commands.reset,
    "help": commands.help_,
    "quit": commands.quit_,
}
ALSO = {"exit": "quit", "q": "quit", "?": "help", "h": "hint", "a": "answer", "n": "next"}
ALSO |= {"目标": "goals", "提示": "hint", "回答": "answer", "帮助": "help", "退出": "quit"}


def perform(desk: Desk, words: Sequence[str]) -> str:
    """Carry out one command. Raises KlinicError where it does not exist or cannot be done."""
    name = ALSO.get(words[0].lower(), words[0].lower())
    if name not in COMMANDS:
        raise BadUsage(
            desk.say("error.command", word=words[0]),
            "klinic course",
            did_you_mean(name, COMMANDS) or desk.say("error.commands"),
        )
    text = COMMANDS[name](desk, list(words[1:]))
    store(desk.progress, desk.place)
    return text


def once(place: Path, lang: str, words: Sequence[str], given: dict[str, str]) -> int:
    """One command and out; ``given``: the options to repeat. Returns 1 where it was an answer and wrong, else 0."""
    desk = _desk(place, lang, "klinic course", given)
    click.echo(perform(desk, words))
    return int(desk.failed)


def shell(place: Path, lang: str) -> int:
    """Read commands until there are no more, from a terminal or a pipe."""
    desk = _desk(place, lang, "", {})
    terminal = sys.stdin.isatty()
    if terminal:
        _history()
    click.echo(welcome(desk))
    while not desk.leave:
        line = _line(desk.say("shell.prompt"), terminal)
        if line is None:
            click.echo()
            break
        try:
            words = shlex.split(line)
        except ValueError:
            words = line.split()
        if not words:
            continue
        click.echo()
        try:
            click.echo(perform(desk, words))
        except KlinicError as trouble:
            click.echo(complaint(trouble.what, trouble.where, trouble.hint, desk.lang))
        except KeyboardInterrupt:
            click.echo()
        click.echo()
    return 0


def welcome(desk: Desk) -> str:
    """What a newcomer, or one who comes back, sees first."""
    progress = desk.progress
    kept = desk.say("shell.kept", place=desk.place)
    if not progress.seen:
        return f"{desk.say('shell.welcome').lstrip()}\n{kept}\n\n{desk.type('next', 'help')}\n"
    order = tasks(progress.turn)
    done = sum(progress.done.get(f"{progress.turn}/{one.id}", False) for one in order)
    again = desk.say("shell.again", turn=progress.turn, done=done, all=len(order))
    return f"{again}\n{kept}\n\n{commands.advice(desk)}\n"


def _line(prompt: str, terminal: bool) -> str | None:
    """The next line; in a pipe the command is echoed, so that the output can be read alone."""
    if terminal:
        try:
            return input(prompt)
        except EOFError:
            return None
        except KeyboardInterrupt:
            return ""
    line = sys.stdin.readline()
    if not line:
        return None
    click.echo(f"{prompt}{line.rstrip()}")
    return line


def _history() -> None:
    """Arrow keys, where Python was built with readline."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401


def _desk(place: Path, lang: str, prefix: str, given: dict[str, str]) -> Desk:
    progress, aside = load(place)
    desk = Desk(progress, place, lang, prefix, given)
    if aside is not None:
        click.echo(desk.say("shell.aside", place=aside), err=True)
    return desk
