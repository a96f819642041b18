"""What was done to logged numbers, in the reader's language; a metric carries klinic's English words."""

from __future__ import annotations

import re
from functools import cache

from klinic.text import sentences

PREFIX = "conversion."


def conversion_in(said: str, lang: str) -> str:
    """One conversion, or several with semicolons between; words that no sentence knows stay as they are."""
    if lang == "en":
        return said
    return "；".join(_one(part, lang) for part in said.split("; "))


def _one(said: str, lang: str) -> str:
    for pattern, text in _patterns(lang):
        if found := pattern.fullmatch(said):
            return text.replace("{}", found.group(1)) if found.groups() else text
    return said


@cache
def _patterns(lang: str) -> list[tuple[re.Pattern[str], str]]:
    """The most specific first: plain sentences, then those with a place for what varies."""
    known = {
        key.removeprefix(PREFIX): text
        for key, text in sentences("advise", lang).items()
        if key.startswith(PREFIX)
    }
    ordered = sorted(known.items(), key=lambda item: ("{}" in item[0], -len(item[0])))
    return [
        (re.compile("(.*)".join(re.escape(part) for part in key.split("{}"))), text)
        for key, text in ordered
    ]
