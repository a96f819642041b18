"""What the learner typed: slugs, letters and names in either language, and "did you mean" where none fits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from klinic.course.scenes import specs
from klinic.course.words import tell
from klinic.errors import BadUsage, did_you_mean
from klinic.vitals import ROLES

LONGEST = 5  # words of the longest name


@cache
def letters() -> dict[str, str]:
    """Letter -> slug."""
    return {choice["letter"]: choice["slug"] for choice in specs()["choice"]}


@cache
def names() -> dict[str, str]:
    """Every way to say an answer, normalised -> slug."""
    from klinic.text import LANGUAGES, page

    known: dict[str, str] = {}
    for choice in specs()["choice"]:
        slug = choice["slug"]
        for name in (slug, *choice["names"]):
            known[_plain(name)] = slug
        if slug != "healthy":
            for lang in LANGUAGES:
                known.setdefault(_plain(page(slug, lang).title), slug)
    return known


def _plain(word: str) -> str:
    return re.sub(r"[\s_\-]+", "-", word.strip().lower())


def slugs(typed: Sequence[str], lang: str) -> list[str]:
    """The answers in the order typed; a metric's name stays as it is. Raises BadUsage for what fits nothing."""
    words = [w for part in typed for w in re.split(r"[,，、;；\s]+", part) if w]
    found: list[str] = []
    i = 0
    while i < len(words):
        for reach in range(min(LONGEST, len(words) - i), 0, -1):
            word = _plain("-".join(words[i : i + reach]))
            slug = names().get(word)
            if slug is None and reach == 1:
                role = word.replace("-", "_")
                slug = letters().get(word) or (role if role in ROLES else None)
            if slug is not None:
                found.append(slug)
                i += reach
                break
        else:
            raise BadUsage(
                tell("error.answer", lang, word=words[i]),
                "answer",
                _nearest(words[i:], lang) or tell("error.words", lang),
            )
    return found


def _nearest(words: Sequence[str], lang: str) -> str:
    for reach in (3, 2, 1):
        near = did_you_mean(_plain("-".join(words[:reach])), names())
        if near:
            slug = names()[near.removeprefix("did you mean ").removesuffix("?")]
            return tell("error.near", lang, word=slug)
    return ""


def picked(typed: Sequence[str], options: Sequence[str], lang: str) -> list[str]:
    """The letters of a multiple-choice answer, sorted. Raises BadUsage for one that is no option."""
    chosen = sorted(set(re.sub(r"[^a-z]", "", "".join(typed).lower())))
    strange = [letter for letter in chosen if letter not in options]
    if not chosen or strange:
        raise BadUsage(
            tell("error.letter", lang, word=" ".join(typed) or "-"),
            "answer",
            tell("error.letters", lang, letters=" ".join(options)),
        )
    return chosen
