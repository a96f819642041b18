"""Widths and line breaks of a terminal, where a Chinese character takes two columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

WIDTH = 80
_BREAKS_AFTER = "，。；：、！？）"
_NO_BREAK_AFTER = "（“"


def columns(text: str) -> int:
    """Columns a text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def pad(text: str, width: int) -> str:
    """Fill up with blanks to ``width`` columns."""
    return text + " " * max(0, width - columns(text))


def wrap(text: str, indent: str = "", hang: str = "", width: int = WIDTH) -> str:
    """Break at blanks, and between Chinese characters; a single long word (a flag, a path) is never cut."""
    lines, line = [], indent
    for piece in _pieces(text):
        if columns(line) + columns(piece.rstrip()) > width and line.strip():
            lines.append(line.rstrip())
            line, piece = hang, piece.lstrip()
        line += piece
    lines.append(line.rstrip())
    return "\n".join(lines)


def _pieces(text: str) -> Iterator[str]:
    word = ""
    for i, c in enumerate(text):
        word += c
        following = text[i + 1] if i + 1 < len(text) else ""
        wide = unicodedata.east_asian_width(c) in "WF"
        if (
            c == " "
            or (wide and c not in _NO_BREAK_AFTER and following not in _BREAKS_AFTER)
            or (
                following
                and c not in _NO_BREAK_AFTER
                and unicodedata.east_asian_width(following) in "WF"
                and following not in _BREAKS_AFTER
            )
        ):
            yield word
            word = ""
    if word:
        yield word
