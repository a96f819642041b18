"""The vocabulary: 38 tokens, and how a row of them reads as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

FILLERS = [
    "so",
    "then",
    "well",
    "now",
    "next",
    "hmm",
    "okay",
    "let",
    "see",
    "thus",
    "add",
    "get",
    "gives",
    "wait",
    "right",
    "fine",
]
OPERATIONS = ["SUM", "MAX", "MIN", "ODD"]
TOKENS = [
    "<pad>",
    "<eos>",
    *"0123456789",
    ",",
    "=",
    "<think>",
    "</think>",
    "<answer>",
    "</answer>",
    *OPERATIONS,
    *FILLERS,
]
ID = {token: i for i, token in enumerate(TOKENS)}
SIZE = len(TOKENS)
PAD, EOS, ZERO, COMMA, EQUALS = 0, 1, ID["0"], ID[","], ID["="]
THINK, THINK_END, ANSWER, ANSWER_END = (
    ID[token] for token in ("<think>", "</think>", "<answer>", "</answer>")
)
FILLER_IDS = [ID[word] for word in FILLERS]


def is_digit(token: int) -> bool:
    """Whether the token is one of 0 to 9."""
    return ZERO <= token < ZERO + 10


def digits_of(number: int) -> list[int]:
    """The tokens of a number, one a digit."""
    return [ZERO + int(c) for c in str(number)]


def numbers_in(tokens: Iterable[int]) -> list[str]:
    """The numbers written in a row of tokens; digits side by side are one number."""
    found: list[str] = []
    before = False
    for token in tokens:
        digit = is_digit(token)
        if digit and before:
            found[-1] += TOKENS[token]
        elif digit:
            found.append(TOKENS[token])
        before = digit
    return found


def text(tokens: Sequence[int]) -> str:
    """The tokens as words; digits side by side are joined, padding is left out."""
    words: list[str] = []
    before = False
    for token in tokens:
        if token == PAD:
            continue
        digit = is_digit(token)
        if digit and before:
            words[-1] += TOKENS[token]
        else:
            words.append(TOKENS[token])
        before = digit
    return " ".join(words)
