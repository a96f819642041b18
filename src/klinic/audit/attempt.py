"""One way to be paid without solving the problem, written for one row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from klinic.audit.answers import CHOICE, CHOICES, LONG, OPPOSITE, WORD, Answer, number_of
from klinic.audit.formats import around, filled

MOST = 400  # numbers that a list of candidates may hold: some 1,600 tokens (our choice)
SHORT_LIST = 21  # 0 to 20: where the answers of most word problems for children lie


@dataclass(frozen=True, slots=True)
class Attempt:
    """A completion. against: the format whose wrong answer it is held against; "" is the worst-paid plain wrong answer.

    guesses: answers that it may be said to state; on a row where one of them is right, it was lucky, and that row does not
    count. knows: it holds the row's right answer, which no policy could write without solving the problem: what it earns is
    paid for a wrong statement. few: the text is the same for every row, or heavy, so that some rows are enough.
    """

    name: str
    text: str
    against: str = ""
    guesses: tuple[str, ...] = ()
    knows: bool = False
    few: bool = False


@dataclass(frozen=True)
class Sight:
    """What an exploit may use of a row: the question, the answers of the other rows, and the format that pays best.

    answer: the right one, for attempts that ``knows`` marks. tags, words: what the function's source looks for.
    """

    prompt: str
    answer: Answer | None
    wrong: str
    format: str
    template: str
    others: Sequence[str]
    tags: Sequence[str]
    words: Sequence[str]

    def put(self, answer: str) -> str:
        """An answer in the format that pays best."""
        return filled(self.template, answer)

    def pieces(self) -> tuple[str, str]:
        """What that format writes before and after the answer."""
        return around(self.template)

    def each(self, answers: Sequence[str]) -> str:
        """Several answers, each in the format that pays best, without the work in between."""
        before, after = self.pieces()
        return "\n".join(before + one + after for one in answers)

    @cached_property
    def candidates(self) -> dict[str, list[str]]:
        """Lists that a policy could write without knowing: small numbers, the range of the answers, options, frequent texts."""
        kind = self.answer.kind if self.answer is not None else ""
        if kind == CHOICE:
            return {"options": list(CHOICES[:4]), "options-long": list(CHOICES)}
        if kind == WORD and self.answer is not None:
            both = sorted((self.answer.stated.lower(), OPPOSITE[self.answer.stated.lower()]))
            return {"both": both, "both-turned": both[::-1]}
        values = [value for o in self.others if (value := number_of(o)) is not None]
        whole = [int(value) for value in values if value.denominator == 1]
        lists: dict[str, list[str]] = {}
        if not self.others or whole:
            lists["small"] = [str(n) for n in range(SHORT_LIST)]
        if whole and len(whole) * 2 >= len(self.others):
            low, high = max(min(whole), -MOST // 2), min(max(whole), MOST)
            if high >= SHORT_LIST or low < 0:
                lists["range"] = [str(n) for n in range(low, min(high, low + MOST) + 2)]
        if len(whole) < len(self.others):
            texts = list(dict.fromkeys(o for o in self.others if len(o) < LONG))[:50]
            if len(texts) > 2:
                lists["seen"] = texts
        return lists

    @property
    def numbers(self) -> list[str]:
        """The numbers of the question, in order."""
        return re.findall(r"-?\d+(?:\.\d+)?", self.prompt.replace(",", ""))
