"""A text as words, and what its words and letters tell: repetition, scripts, phrases, sameness."""

from __future__ import annotations

import re
import zlib
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from klinic.compiled import compiled, parsed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

WORD = re.compile(
    r"</?\w{1,20}>|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\d+|[^\w\s]"
)
# The same of plain ASCII, in half the time: its sets of letters are small.
ASCII_WORD = re.compile(r"[A-Za-z]+|[0-9]+|</?\w{1,20}>|[^\w\s]", re.ASCII)
SCRIPTS = {
    "latin": re.compile(r"[A-Za-z\u00c0-\u024f]"),
    "han": re.compile(r"[\u3400-\u9fff]"),
    "kana": re.compile(r"[\u3040-\u30ff]"),
    "hangul": re.compile(r"[\uac00-\ud7af]"),
    "cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f]"),
    "hebrew": re.compile(r"[\u0590-\u05ff]"),
    "thai": re.compile(r"[\u0e00-\u0e7f]"),
    "devanagari": re.compile(r"[\u0900-\u097f]"),
}  # Greek letters stand for quantities in mathematics and count as no language
IDEOGRAPHS = frozenset({"han", "kana", "hangul"})
LATIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
ZEROS = {ord(digit): "0" for digit in "123456789"}
NUMERAL = re.compile("00+")
BROKEN = re.compile(r"[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f]")
TOKEN_ZERO = 12  # times in a row: "!" is token 0 of the GPT-2 family of vocabularies
GRAM = 4  # words of a repeated stretch (n-gram order of the usual repetition measures)
LETTERS = 12  # letters below which a completion has no language (our choice)
SHINGLE, PERMUTATIONS = 3, 16  # words of a shingle, hashes of a signature (our choice)
REFUSAL_WITHIN = 300  # characters


def words_of(text: str) -> list[str]:
    """Words, tags, numbers and marks in order; Chinese, Japanese and Korean letter by letter."""
    return (ASCII_WORD if text.isascii() else WORD).findall(text)


def repeated(words: list[str]) -> float:
    """Share of the runs of four words that stood before in the same text; 0 for fewer than eight words."""
    n = len(words) - GRAM + 1
    if n < GRAM + 1:
        return 0.0
    return 1 - len(set(zip(words, words[1:], words[2:], words[3:], strict=False))) / n


def squeezed(text: str) -> float:
    """How many times smaller zlib makes the text (of its last 10,000 characters, as slime measures it); 1 for short ones."""
    raw = text[-10000:].encode("utf-8", "replace")
    return len(raw) / len(zlib.compress(raw, 1)) if len(raw) >= 200 else 1.0


def foreign(prompt: str, completion: str) -> float:
    """Share of the completion's letters in scripts that the prompt hardly uses; NaN where there are hardly letters.

    Formulas and single Latin letters among Chinese, Japanese or Korean do not count.
    """
    asked = _asked(prompt)
    if completion.isascii() and "latin" in asked:
        return 0.0 if len(completion) >= LETTERS else float("nan")
    letters = {name: len(p.findall(completion)) for name, p in SCRIPTS.items()}
    total = sum(letters.values())
    if total < LETTERS or not asked:
        return float("nan")
    if asked & IDEOGRAPHS and "latin" not in asked:
        letters["latin"] = sum(map(len, LATIN_WORD.findall(completion)))
    return sum(n for name, n in letters.items() if name not in asked) / total


@lru_cache(maxsize=4096)
def _asked(prompt: str) -> frozenset[str]:
    """The scripts that make up at least a fifth of the prompt's end; an ideograph weighs as much as three letters."""
    end = prompt[-2000:]
    if end.isascii():
        return frozenset({"latin"}) if SCRIPTS["latin"].search(end) else frozenset()
    letters = {
        name: len(p.findall(end)) * (3 if name in IDEOGRAPHS else 1) for name, p in SCRIPTS.items()
    }
    return frozenset(
        n for n, count in letters.items() if count and 5 * count >= sum(letters.values())
    )


def is_broken(text: str) -> bool:
    """Whether it holds bytes that are no text, or a run of what token 0 is written as."""
    return BROKEN.search(text) is not None or "!" * TOKEN_ZERO in text


@cache
def _phrases() -> dict[str, list[tuple[tuple[str, ...], re.Pattern[str]]]]:
    path = Path(__file__).with_name("phrases.toml")
    raw = compiled("rollout-phrases", [path], lambda: parsed(path))
    return {
        name: [(tuple(p["anchors"]), re.compile(p["pattern"], re.IGNORECASE)) for p in found]
        for name, found in raw.items()
    }


def _says(name: str, text: str, low: str) -> bool:
    return any(
        any(map(low.__contains__, anchors)) and pattern.search(text) is not None
        for anchors, pattern in _phrases()[name]
    )


def refuses(text: str) -> bool:
    """Whether it begins with a refusal, English or Chinese."""
    begins = text[:REFUSAL_WITHIN]
    return _says("refusal", begins, begins.lower())


def flatters(text: str, low: str) -> bool:
    """Whether it speaks to please a judge, English or Chinese. low: the text in lower case."""
    return _says("flattery", text, low)


def without_numbers(words: list[str]) -> str:
    """Words as one text in which every number is the same, so that texts that differ in numbers only are equal."""
    return NUMERAL.sub("0", " ".join(words).translate(ZEROS))


def shingles(words: list[str]) -> npt.NDArray[np.uint64]:
    """Hashes of the runs of three words, (n,) of 32 bits."""
    import numpy as np

    if not words:
        return np.zeros(1, dtype=np.uint64)
    hashed = np.fromiter(
        (zlib.crc32(w.encode("utf-8", "replace")) for w in words), np.uint64, len(words)
    )
    n = max(1, len(hashed) - SHINGLE + 1)
    mixed = hashed[:n].copy()
    for i in range(1, min(SHINGLE, len(hashed))):
        mixed = (mixed * np.uint64(1000003) + hashed[i : i + n]) & np.uint64(0xFFFFFFFF)
    return mixed


def signature(words: list[str]) -> bytes:
    """A MinHash signature: PERMUTATIONS hashes of 32 bits; equal places estimate the Jaccard index of the shingles."""
    import numpy as np

    factors, shifts = _permutations()
    found = (shingles(words)[:, None] * factors + shifts) % np.uint64(4294967291)
    mark: bytes = found.min(0).astype(np.uint32).tobytes()
    return mark


@cache
def _permutations() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    import numpy as np

    draw = np.random.default_rng(1)
    return (
        draw.integers(1, 4294967291, PERMUTATIONS).astype(np.uint64),
        draw.integers(0, 4294967291, PERMUTATIONS).astype(np.uint64),
    )
