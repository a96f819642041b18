"""The verifiable tasks on a few digits, and the sloppy teacher that the base models learnt from.

    MAX 3 7 2 =    <think> so 3 then 7 7 </think> <answer> 7 </answer> <eos>

The teacher already lists candidates, leaves answers empty and doubles blocks now and then: reinforcement learning can
only amplify what the base model does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from random import Random

from klinic.lab.words import (
    ANSWER,
    ANSWER_END,
    COMMA,
    EOS,
    EQUALS,
    FILLER_IDS,
    ID,
    PAD,
    THINK,
    THINK_END,
    ZERO,
    digits_of,
)

TASKS = ("max", "min", "odd", "sum")
SHARES = {"max": 0.22, "min": 0.20, "odd": 0.23, "sum": 0.35}  # of the warm-up's prompts
MAIN_TASKS = ("max", "min", "odd")  # those worth training on; sum is nearly out of the base's reach
PROMPT_LENGTH = 11  # the operation, up to nine digits, "="
ERRORS = (-2, -1, 1, 2)


@dataclass(frozen=True, slots=True)
class Problem:
    """One prompt: left-padded tokens (PROMPT_LENGTH,), its digits, and the right answer."""

    task: str
    tokens: tuple[int, ...]
    digits: tuple[int, ...]
    answer: str


def chain(task: str, digits: tuple[int, ...]) -> list[int]:
    """The running values whose last one is the answer."""
    if task == "max":
        return list(accumulate(digits, max))[1:]
    if task == "min":
        return list(accumulate(digits, min))[1:]
    if task == "odd":
        return list(accumulate(d % 2 for d in digits))[1:]
    return list(accumulate(digits))[1:]


def draw(random: Random, task: str, count: int) -> Problem:
    """A problem of ``count`` random digits."""
    digits = tuple(random.randrange(10) for _ in range(count))
    body = [ID[task.upper()], *(ZERO + d for d in digits), EQUALS]
    padded = (PAD,) * (PROMPT_LENGTH - len(body)) + tuple(body)
    return Problem(task, padded, digits, str(chain(task, digits)[-1]))


@dataclass(frozen=True, slots=True)
class Teacher:
    """How sloppy the demonstrations are. Shares of styles: a direct guess, a short chain, a wordy chain."""

    styles: tuple[float, float, float] = (0.38, 0.40, 0.22)
    guess_error: float = 0.85
    short_error: float = 0.26
    wordy_error: float = 0.09
    slip: float = 1.0  # 1: 12 % of the answers break the format

    def demonstrate(self, random: Random, problem: Problem, noise: float = 1.0) -> list[int]:
        """One demonstration's tokens. noise: 0 is a teacher that makes no mistake in the chain."""
        values = chain(problem.task, problem.digits)
        out = [THINK]

        def fillers(count: int) -> list[int]:
            return [random.choice(FILLER_IDS) for _ in range(count)]

        style = random.choices((0, 1, 2), self.styles)[0]
        if style == 0:
            out += fillers(random.randrange(1, 5))
            answer = values[-1]
            if random.random() < self.guess_error * noise:
                answer = _off(random, answer)
        else:
            error = noise * (self.short_error if style == 1 else self.wordy_error)
            shift, answer = 0, 0
            for value in values:
                written = value + shift if problem.task == "sum" else value
                if random.random() < error:
                    wrong = _off(random, written)
                    shift += wrong - written
                    written = wrong
                answer = written
                extra = int(random.random() < 0.3) if style == 1 else 1 + _geometric(random)
                out += fillers(1 + extra) + digits_of(written)
        out.append(THINK_END)
        return out + self._answer(random, answer)

    def _answer(self, random: Random, answer: int) -> list[int]:
        at = random.random() / self.slip if self.slip else 1.0
        if at < 0.05:  # lists several candidates
            out = [ANSWER, *digits_of(answer)]
            for _ in range(random.randrange(1, 3)):
                out += [COMMA, *digits_of(_off(random, answer))]
            return [*out, ANSWER_END, EOS]
        if at < 0.08:  # an empty answer
            return [ANSWER, ANSWER_END, EOS]
        if at < 0.10:  # a tag left open
            return [ANSWER, *digits_of(answer), EOS]
        if at < 0.12:  # two answers
            second = digits_of(_off(random, answer))
            return [ANSWER, *digits_of(answer), ANSWER_END, ANSWER, *second, ANSWER_END, EOS]
        return [ANSWER, *digits_of(answer), ANSWER_END, EOS]


def _off(random: Random, value: int) -> int:
    return abs(value + random.choice(ERRORS))


def _geometric(random: Random, most: int = 4) -> int:
    count = 0
    while count < most and random.random() > 0.6:
        count += 1
    return count
