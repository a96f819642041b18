"""Error messages in Chinese: raised in English anywhere, looked up where they are printed.

``lang/errors.zh.toml`` holds an English template for every message, its holes written ``{}``, and the Chinese one with
the same holes by number. A message is matched against the templates; one that matches none stays English.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from klinic.compiled import parsed

CATALOGUE = Path(__file__).parent / "lang" / "errors.zh.toml"
# "error: ", what stands between where and what, "hint: "
MARKS = {"en": ("error: ", ": ", "hint: "), "zh": ("错误：", "：", "提示：")}


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Chinese template by the English one, in sections by who says it: klinic, click, the system and its parsers."""
    return parsed(CATALOGUE)


@cache
def _exact() -> dict[str, str]:
    return {english: zh for part in catalogue().values() for english, zh in part.items()}


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Templates with holes, the most particular first: those that open with a word, then by length of literal text.

    "Invalid value for {}: {}" must come before the "{} is not in the range {}." that its hole may hold.
    """
    holed = [(english.split("{}"), chinese) for english, chinese in _exact().items()]
    holed = [(parts, chinese) for parts, chinese in holed if len(parts) > 1]
    holed.sort(key=lambda one: (not one[0][0], -sum(map(len, one[0]))))
    return tuple(
        (re.compile("(.*?)".join(map(re.escape, parts)), re.DOTALL), chinese)
        for parts, chinese in holed
    )


def said(text: str, lang: str) -> str:
    """An error's ``what`` or ``hint`` in the language; English, as it was raised, where the catalogue has none.

    A hole ``{0!}`` is looked up as well: the system's reason in "cannot be read (Permission denied)".
    """
    if lang != "zh" or not text:
        return text
    if text in _exact():
        return _exact()[text]
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(text)
        if found:
            return re.sub(r"\{(\d+)(!?)\}", lambda m: _filled(found, m, lang), chinese)  # noqa: B023
    return text


def _filled(found: re.Match[str], hole: re.Match[str], lang: str) -> str:
    text: str = found.group(int(hole.group(1)) + 1)
    return said(text, lang) if hole.group(2) else text


def complaint(what: str, where: str, hint: str, lang: str) -> str:
    """The lines a user sees: ``error: WHERE: WHAT``, and ``hint: WHAT TO DO`` on its own line."""
    error, between, do = MARKS.get(lang, MARKS["en"])
    first = error + (where + between if where else "") + said(what, lang)
    return first + (f"\n{do}{said(hint, lang)}" if hint else "")
