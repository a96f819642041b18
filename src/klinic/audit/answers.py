"""What a right answer is, which wrong one stands beside it, and how else people write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

NUMBER, CHOICE, WORD, EXPRESSION, TEXT = "number", "choice", "word", "expression", "text"
CHOICES = "ABCDEFGH"
OPPOSITES = (("yes", "no"), ("true", "false"), ("是", "否"), ("对", "错"), ("正确", "错误"))
OPPOSITE = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
# Wrong numbers to choose from where no other row's will do: of one to five digits, without a digit in common.
SPARE = ("8", "53", "246", "9071", "3", "61", "785", "4920", "17", "90", "26485")
SPARE_TEXTS = ("a blue whale", "x + 1", "none of these")
APART = 0.1  # a wrong number is at least a tenth away from the right one: no tolerance takes it (our choice)
LONG = 80  # characters: an answer longer than this is a text that nobody lists


@dataclass(frozen=True, slots=True)
class Answer:
    """stated: as a completion would state it. number: its value, if it is one."""

    stated: str
    kind: str
    number: Fraction | None = None

    def same(self, other: str) -> bool:
        """Whether another answer means the same, as far as that can be told without a parser of mathematics."""
        value = number_of(other)
        if self.number is not None and value is not None:
            return self.number == value
        return _bare(self.stated) == _bare(other)


def _bare(text: str) -> str:
    return re.sub(r"[\s$().,{}\\]", "", text).lower()


def number_of(text: str) -> Fraction | None:
    """The value of a number as people write it: 1,000, $7$, -3.5, 3/4, \\frac{3}{4}; a percentage is none."""
    plain = text.strip().strip("$").strip().replace("\u2212", "-").replace("\\$", "").strip("$ ")
    plain = re.sub(r"^(-?)\s*\\[dt]?frac\{(\d+)\}\{(\d+)\}$", r"\1\2/\3", plain)
    plain = re.sub(r"(?<=\d),(?=\d{3}(\D|$))", "", plain)
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)(/[1-9]\d*)?", plain, re.ASCII) or ("." in plain and "/" in plain):  # fmt: skip
        return None
    return Fraction(plain) if len(plain) < LONG else None


def read_answer(given: Any) -> Answer | None:
    """The answer in what a column holds: after GSM8K's ####, inside the last \\boxed{} or <answer>; None for no text."""
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if isinstance(given, bool):
        given = str(given)
    if not isinstance(given, str | int | float):
        return None
    text = str(given)
    if "####" in text:
        text = text.rpartition("####")[2]
    elif tagged := re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL):
        text = tagged[-1]
    elif "\\boxed{" in text:
        text = _boxed(text)
    text = text.strip()
    if not text:
        return None
    value = number_of(text)
    if value is not None:
        return Answer(text, NUMBER, value)
    if re.fullmatch(r"\(?[A-Ha-h][).]?", text):
        return Answer(text, CHOICE)
    if text.lower() in OPPOSITE:
        return Answer(text, WORD)
    return Answer(text, EXPRESSION if re.search(r"[\\^_{}=+*/]|\d", text) else TEXT)


def _boxed(text: str) -> str:
    begun = text.rindex("\\boxed{") + len("\\boxed{")
    depth = 1
    for at in range(begun, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[begun:at]
    return text[begun:]


def wrong_for(answer: Answer, pool: Sequence[str]) -> str:
    """A wrong answer of the same kind; neither contains the other, so that no extractor takes it for the right one."""
    if answer.kind == CHOICE:
        letter = re.sub(r"[^A-Za-z]", "", answer.stated)
        other = "B" if letter.upper() != "B" else "C"
        return answer.stated.replace(letter, other if letter.isupper() else other.lower())
    if answer.kind == WORD:
        other = OPPOSITE[answer.stated.lower()]
        return other.capitalize() if answer.stated[0].isupper() else other
    spare = SPARE if answer.number is not None else (*SPARE_TEXTS, *SPARE)
    near = [p for p in pool if len(p) < LONG and (number_of(p) is None) == (answer.number is None)]
    return next((c for c in (*near, *spare) if _apart(answer, c)), "-1")


def _apart(answer: Answer, other: str) -> bool:
    mine, its = answer.stated.strip().lower(), other.strip().lower()
    if answer.same(other) or mine in its or its in mine:
        return False
    value = number_of(other)
    if answer.number is None or value is None:
        return True
    if set(re.findall(r"\d+", mine)) & set(re.findall(r"\d+", its)):  # 1/2 and 1/3
        return False
    return abs(abs(value) - abs(answer.number)) > APART * max(abs(value), abs(answer.number))


def spellings(answer: Answer) -> Iterable[tuple[str, str]]:
    """Usual ways to write the same answer: name, text."""
    stated = answer.stated
    yield "blanks", f"  {stated} "
    yield "full-stop", f"{stated}."
    yield "bold", f"**{stated}**"
    if answer.kind in (NUMBER, EXPRESSION):
        yield "dollars", f"${stated.strip('$')}$"
        yield "boxed", f"\\boxed{{{stated}}}"
        yield "equation", f"x = {stated}"
    if answer.kind == CHOICE:
        letter = re.sub(r"[^A-Za-z]", "", stated)
        yield "parentheses", f"({letter})"
        yield "letter-stop", f"{letter}."
        yield "case", letter.swapcase()
    if answer.kind in (WORD, TEXT):
        yield "case", stated.lower() if stated != stated.lower() else stated.capitalize()
    if answer.number is not None:
        yield from _numbers(stated, answer.number)


def _numbers(stated: str, value: Fraction) -> Iterable[tuple[str, str]]:
    yield "unit", f"{stated} units"
    if value.denominator == 1:
        whole = value.numerator
        if stated != f"{whole}.0":
            yield "decimal", f"{whole}.0"
        if abs(whole) >= 1000:
            plain, comma = str(whole), f"{whole:,}"
            yield "thousands", comma if "," not in stated else plain
        yield "text-macro", f"\\text{{{stated}}}"
    else:
        top, bottom = abs(value.numerator), value.denominator
        sign = "-" if value < 0 else ""
        yield "fraction", f"{sign}{top}/{bottom}"
        yield "latex-fraction", f"{sign}\\frac{{{top}}}{{{bottom}}}"
        exact = not _rest(bottom)
        if exact:
            yield "decimal", f"{float(value):.10g}"
            yield "trailing-zero", f"{float(value):.10g}0"
    if value < 0:
        yield "minus-sign", stated.replace("-", "\u2212")


def _rest(bottom: int) -> int:
    """What is left of a denominator without its twos and fives: 1 less than that."""
    for prime in (2, 5):
        while bottom % prime == 0:
            bottom //= prime
    return bottom - 1
