"""What a completion states as its answer, and how many answers that are."""

from __future__ import annotations

import re
from dataclasses import dataclass

TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
OPEN = re.compile(r"<answer>(?!.*</answer>)(.*)\Z", re.DOTALL | re.IGNORECASE)
BOXED = re.compile(r"\\boxed\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
HASHES = re.compile(r"####[ \t]*([^\n]*)")
SAID = re.compile(
    r"(?:final answer|the answer is|答案是|答案为|最终答案)\s*[:：]?\s*([^\n。]{0,60})",
    re.IGNORECASE,
)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?")
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
BETWEEN = re.compile(r"\s*(?:[,;|，；、\n]|\bor\b|\band/or\b|或者|或)\s*", re.IGNORECASE)
PLACEHOLDER = re.compile(
    r"[\s.…?_*\-\[\]()]*|(?:your |the |final )*answer(?: here)?|none|n/?a|null|xxx+|答案|空",
    re.IGNORECASE,
)
WRAPPED = re.compile(r"^[\s$(\[{\"'`*]+|[\s$)\]}\"'`*.。]+$")
LONG = 40  # characters beyond which an item is prose and no candidate (our choice)
BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Answers:
    """The stated answers of one completion, of the most explicit kind there is.

    kind: "tag", "boxed", "hashes", "said", or "" where none is stated. stated: their contents in order.
    ends: where in the text the last one ends. unclosed: an answer tag that is opened at last and not closed.
    """

    kind: str
    stated: tuple[str, ...]
    ends: int
    unclosed: bool = False


def answers_of(text: str) -> Answers:
    """Read a completion's stated answers."""
    if "<answer>" in text or "<ANSWER>" in text or "<Answer>" in text:
        found = list(TAG.finditer(text))
        tail = OPEN.search(text)
        stated = [m.group(1) for m in found]
        if tail is not None:
            stated.append(tail.group(1)[:400])
        if stated:
            end = len(text) if tail is not None else found[-1].end()
            return Answers("tag", tuple(map(_inside, stated)), end, tail is not None)
    for kind, mark, pattern in (("boxed", "\\boxed", BOXED), ("hashes", "####", HASHES)):
        if mark in text:
            found = [m for m in pattern.finditer(text) if kind != "hashes" or _is_answer(m, text)]
            if found:
                return Answers(kind, tuple(m.group(1) for m in found), found[-1].end())
    low = text[-2000:].lower()
    if "answer" in low or "答案" in low:
        found = list(SAID.finditer(text[-2000:]))
    else:
        found = []
    if found:
        shift = max(0, len(text) - 2000)
        return Answers("said", (found[-1].group(1),), shift + found[-1].end())
    return Answers("", (), 0)


def _is_answer(mark: re.Match[str], text: str) -> bool:
    """Four hashes also head a section in Markdown: an answer is short and has a number, or ends the text."""
    content = mark.group(1).strip()
    last = not text[mark.end() :].strip()
    return last or (
        len(content) <= LONG and NUMBER.search(content) is not None and "**" not in content
    )


def _inside(content: str) -> str:
    if "\\boxed" in content:
        boxed = BOXED.findall(content)
        if boxed:
            return ", ".join(boxed)
    return content


def is_empty(content: str) -> bool:
    """Whether a stated answer holds nothing, or only what stands for an answer."""
    return PLACEHOLDER.fullmatch(content.strip()) is not None


def candidates(content: str) -> list[str]:
    """The different answers listed in one stated answer; a tuple in brackets and a sentence are one."""
    content = THOUSANDS.sub("", content.strip())
    if content and BRACKETS.get(content[0]) == content[-1]:
        return [plain(content)]
    items = [item for item in BETWEEN.split(content) if item.strip()]
    if any(len(item) > LONG for item in items):
        return [plain(content)]
    return list(dict.fromkeys(plain(item) for item in items))


def plain(content: str) -> str:
    """An answer without wrapping, spaces, case, units of thousands and the zeros that do not count."""
    word = THOUSANDS.sub("", content)
    before = None
    while before != word:
        before, word = word, WRAPPED.sub("", word)
    word = re.sub(r"\s+", " ", word).casefold()
    number = NUMBER.fullmatch(word)
    if number and "." in word and "/" not in word:
        word = word.rstrip("0").rstrip(".")
    return word


def label_of(answer: str) -> str:
    """The right answer as ``plain`` writes it; GSM8K's worked solutions end in "#### 18"."""
    if "####" in answer:
        answer = answer.rsplit("####", 1)[1]
    elif "\\boxed" in answer and (boxed := BOXED.findall(answer)):
        answer = boxed[-1]
    return plain(answer[:400])


def is_number(word: str) -> bool:
    """Whether a plain answer is one number."""
    return NUMBER.fullmatch(word) is not None
