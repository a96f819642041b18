"""What is measured of every sample, as arrays: one number a sample and column, NaN where nothing can be said."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from klinic.rollouts.answers import (
    NUMBER,
    Answers,
    answers_of,
    candidates,
    is_empty,
    is_number,
    label_of,
    plain,
)
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.words import (
    flatters,
    foreign,
    is_broken,
    refuses,
    repeated,
    signature,
    squeezed,
    without_numbers,
    words_of,
)

Columns = dict[str, npt.NDArray[Any]]

NUMBERS = (
    "step",
    "reward",
    "advantage",
    "length",
    "truncated",
    "policy_version",
    "acc",
    "right",  # strictly: one stated answer and no other, equal to the label; else as the trainer judged
    "words",
    "stated",  # how many answers are stated
    "empty",  # of the stated answers one holds nothing
    "listed",  # how many candidates the stated answers offer together in one place
    "covered",  # the right answer is among several candidates
    "unread",  # stated, and no number where the label is one; or an answer tag left open
    "trailing",  # numbers follow the stated answer
    "last_number",  # the last number is the label although it is not what is stated
    "echoed",  # words and digits of the prompt that the completion says again, over those of the prompt
    "copied",  # share of the prompt's runs of six words that the completion repeats
    "repeated",
    "squeezed",
    "foreign",
    "broken",
    "refusal",
    "flattery",
    "failed",  # the verifier raised
)
HASHES = (
    "text",
    "opening",
    "ending",
    "skeleton",
    "prompt",
)  # 63-bit; equal where the texts are equal
OPENING, ENDING = 8, 6  # words (our choice)
COPY = 6  # words of a copied run (our choice)
PROMPT_WORDS = 400  # from the prompt's end; the question stands there, the instructions before it
LONGEST = 60_000  # characters of a completion that are looked at: its beginning and its end
RUN = b"\x01" * COPY
DIGITS = re.compile(r"\d+")


def measure(rows: Sequence[Rollout]) -> Columns:
    """Measure samples. Returns float64 columns of NUMBERS and int64 ones of HASHES, each (len(rows),)."""
    numbers = np.full((len(rows), len(NUMBERS)), math.nan)
    hashes = np.zeros((len(rows), len(HASHES)), dtype=np.int64)
    for i, row in enumerate(rows):
        numbers[i], hashes[i] = _one(row)
    found: Columns = {name: numbers[:, j].copy() for j, name in enumerate(NUMBERS)}
    return found | {f"hash_{name}": hashes[:, j].copy() for j, name in enumerate(HASHES)}


def signatures(rows: Sequence[Rollout]) -> list[bytes]:
    """MinHash signatures of completions: the heavy measure, taken of a stated sample of each step."""
    return [signature(words_of(DIGITS.sub("0", _seen(row.completion)))) for row in rows]


def digest(text: str) -> int:
    """63 bits that are equal for equal texts."""
    raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(raw, "little") >> 1


def _seen(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + text[-LONGEST // 2 :]


def _one(row: Rollout) -> tuple[list[float], list[int]]:
    text = _seen(row.completion)
    low = text.lower()
    words = words_of(low)
    said = answers_of(text)
    label = label_of(row.answer) if row.answer else ""
    offers = _offers(said)
    asked = _prompt(row.prompt)
    nothing = not text.strip()
    numbers = [
        float(row.step),
        row.reward,
        row.advantage,
        row.length,
        math.nan if row.truncated is None else float(row.truncated),
        row.policy_version,
        row.acc,
        _right(row, said, label, offers),
        float(len(words)),
        float(len(said.stated)),
        float(any(map(is_empty, said.stated))) if said.stated else 0.0,
        float(len(offers)) if said.stated else math.nan,
        math.nan if not label or len(offers) < 2 else float(label in offers),
        _unread(said, label, offers),
        float(bool(said.kind in ("tag", "boxed") and NUMBER.search(text, said.ends))),
        _last_number(text, said, label),
        _echoed(words, asked),
        _copied(words, asked),
        repeated(words),
        squeezed(text),
        foreign(row.prompt, text),
        float(is_broken(text)),
        math.nan if nothing else float(refuses(text)),
        math.nan if nothing else float(flatters(text, low)),
        float(bool(row.error)),
    ]
    hashes = [
        digest(text),
        digest(without_numbers(words[:OPENING])),
        digest(without_numbers(words[-ENDING:])),
        digest(without_numbers(words)),
        digest(row.prompt_id or row.prompt),
    ]
    return numbers, hashes


def _offers(said: Answers) -> list[str]:
    """Different candidates: those of the last stated answer, or all where several are stated."""
    if not said.stated:
        return []
    if len(said.stated) == 1:
        return candidates(said.stated[0])
    return list(dict.fromkeys(c for stated in said.stated for c in candidates(stated)))


def _right(row: Rollout, said: Answers, label: str, offers: list[str]) -> float:
    """1 where the one stated answer is the label, or where the trainer says so and nothing speaks against it."""
    plainly = len(said.stated) == 1 and len(offers) == 1 and not said.unclosed
    if label and said.stated:
        if plainly and offers[0] == label:
            return 1.0
        if plainly and not is_empty(said.stated[0]) and not is_number(offers[0]):
            numbers = {plain(n) for n in NUMBER.findall(said.stated[0])}
            if is_number(label) and len(numbers) == 1:
                return float(label in numbers)  # a sentence around one number
            return row.acc  # another spelling may be equal to the label: the trainer's word counts
        if plainly and not math.isnan(row.acc) and not is_number(label):
            return row.acc
        return 0.0
    if said.stated and not plainly and label:
        return 0.0
    return row.acc


def _unread(said: Answers, label: str, offers: list[str]) -> float:
    if not said.stated:
        return math.nan
    if said.unclosed:
        return 1.0
    if not label or not is_number(label):
        return math.nan
    return float(len(offers) != 1 or not is_number(offers[0]))


def _last_number(text: str, said: Answers, label: str) -> float:
    """Whether a rule that takes the last number would take the label from a text that states another answer, or none."""
    if not label or not is_number(label):
        return math.nan
    found = NUMBER.findall(text, max(0, len(text) - 400))
    if not found or plain(found[-1]) != label:
        return 0.0
    return float(not (said.stated and plain(said.stated[-1]) == label))


class _Prompt(NamedTuple):
    """A prompt's words, its digits one by one (they may come back in other numbers), everything in it, its runs of six."""

    words: frozenset[str]
    digits: frozenset[str]
    everything: frozenset[str]
    runs: frozenset[tuple[str, ...]]


@lru_cache(maxsize=4096)
def _prompt(prompt: str) -> _Prompt:
    words = words_of(prompt.lower())[-PROMPT_WORDS:]
    return _Prompt(
        frozenset(w for w in words if w.isalpha()),
        frozenset("".join(w for w in words if w.isdigit())),
        frozenset(words),
        frozenset(zip(*(words[i:] for i in range(COPY)), strict=False)),
    )


def _echoed(words: list[str], asked: _Prompt) -> float:
    if not asked.words and not asked.digits:
        return math.nan
    said = sum(map(asked.words.__contains__, words))
    said += sum(map(asked.digits.__contains__, "".join(filter(str.isdigit, words))))
    return said / (len(asked.words) + len(asked.digits))


def _copied(words: list[str], asked: _Prompt) -> float:
    if len(asked.runs) < COPY:
        return math.nan
    # A run can only stand where COPY words in a row are words of the prompt.
    known = bytes(map(asked.everything.__contains__, words))
    found = set()
    at = known.find(RUN)
    while at >= 0:
        found.add(tuple(words[at : at + COPY]))
        at = known.find(RUN, at + 1)
    return len(asked.runs & found) / len(asked.runs)
