"""Text of a log or a sample as it is shown: what would act on a terminal or reorder a line is made visible instead."""

from __future__ import annotations

import re

# Control characters but tab and newline, and those that turn the direction of writing or take no room.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
PICTURES = 0x2400  # U+2400 is the picture of U+0000, and so on


def visible(text: object) -> str:
    """The text with its control characters as pictures (ESC is ␛) and the others by number."""
    return _ACTS.sub(_picture, str(text).replace("\r\n", "\n"))


def _picture(found: re.Match[str]) -> str:
    number = ord(found.group())
    if number < 0x20:
        return chr(PICTURES + number)
    return "␡" if number == 0x7F else f"⟨U+{number:04X}⟩"
