"""The questions: one or several letters are right, and every option says why or which curve contradicts it."""

from __future__ import annotations

from collections.abc import Sequence

from klinic.course.answers import picked
from klinic.course.desk import Desk
from klinic.course.scenes import specs
from klinic.course.words import content, flowed
from klinic.render._layout import wrap


def options(number: str, lang: str) -> list[str]:
    """The letters of a question."""
    prefix = f"quiz.{number}.option."
    return [key.removeprefix(prefix) for key in content(lang) if key.startswith(prefix)]


def question(desk: Desk) -> str:
    """The question with its options."""
    number = desk.task.number
    lines = [flowed(desk.say(f"quiz.{number}.ask")), ""]
    for letter in options(number, desk.lang):
        lines.append(wrap(f"{letter}  {desk.say(f'quiz.{number}.option.{letter}')}", "  ", "     "))
    return "\n".join(lines)


def answer(desk: Desk, words: Sequence[str]) -> tuple[str, bool]:
    """Judge the letters. Returns what is said, and whether all is right."""
    number = desk.task.number
    chosen = picked(words, options(number, desk.lang), desk.lang)
    right = specs()["quiz"][number]
    good = chosen == right
    wrong = [letter for letter in chosen if letter not in right]
    head = "quiz_right" if good else "quiz_wrong" if wrong else "quiz_missing"
    lines = [desk.say(f"answer.{head}")]
    for letter in options(number, desk.lang) if good else wrong or chosen:
        told = desk.say(f"quiz.{number}.because.{letter}")
        lines.append(wrap(f"{letter}  {told}", "  ", "     "))
    return "\n".join(lines), good
