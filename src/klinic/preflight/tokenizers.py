"""The policy's tokenizer and chat template are the reference's: else its log-probs are of another text."""

from __future__ import annotations

from typing import Any

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed

# Where tokenizers of one family part: blanks, digits, other scripts, code, composed characters.
PROBES = (
    "The answer is 3.14159, not 22/7.",
    "  two blanks,\ttab\n\n\nlines ",
    "def f(x):\n    return x**2 + 10_000",
    "首先，答案是４２。 نعم \U0001f642 e\u0301",
)
TURNS = (
    [{"role": "user", "content": "What is 2 + 2?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
)
SPECIAL = ("bos_token_id", "eos_token_id")  # what pads is nobody's log-prob


@check(20)
def tokenizers(given: Given) -> Result:
    """Vocabulary, special tokens, what they make of a few texts, and the chat template."""
    mine, other = given.tokenizer, given.reference_tokenizer
    if mine is None or other is None:
        names = ("tokenizer",) * (mine is None) + ("reference_tokenizer",) * (other is None)
        return missing(*names)
    if hasattr(mine, "get_vocab") and hasattr(other, "get_vocab"):
        a, b = mine.get_vocab(), other.get_vocab()
        differ = sorted(t for t in a.keys() | b.keys() if a.get(t) != b.get(t))
        if differ:
            return failed("vocabulary", count=len(differ), token=repr(differ[0]))
    for name in SPECIAL:
        a, b = getattr(mine, name, None), getattr(other, name, None)
        if a != b:
            return failed("special", which=name, mine=str(a), other=str(b))
    for text in PROBES:
        if list(mine.encode(text)) != list(other.encode(text)):
            return failed("encoding", text=repr(text))
    a, b = _rendered(mine), _rendered(other)
    if a != b:
        return failed("template")
    return passed("good" if any(a) else "no-template", probes=len(PROBES))


def _rendered(tokenizer: Any) -> list[str | None]:
    """What the chat template makes of the probe turns; None where it refuses them, or there is none."""
    if not getattr(tokenizer, "chat_template", None):
        return [None] * len(TURNS)
    return [_one(tokenizer, turns) for turns in TURNS]


def _one(tokenizer: Any, turns: list[dict[str, str]]) -> str:
    try:
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
    except Exception as refusal:  # templates raise what they like, e.g. for a system turn
        return f"refused: {refusal}"
