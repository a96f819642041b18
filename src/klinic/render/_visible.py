"""Text of a log or a sample as it is shown: what would act on a terminal or reorder a line is made visible instead."""

from __future__ import annotations

import re
from typing import Any

# Control characters but tab and newline, and those that turn the direction of writing or take no room.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# By their names, since few fonts hold the pictures of U+2400.
FIRST = "NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI"
SECOND = "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
NAMES = tuple(f"{FIRST} {SECOND}".split(" "))


def visible(text: object) -> str:
    """The text with its control characters by name (⟨ESC⟩) and the others by number."""
    return _ACTS.sub(_picture, str(text).replace("\r\n", "\n"))


def _picture(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"⟨{NAMES[number] if number < len(NAMES) else f'U+{number:04X}'}⟩"


def visible_all(found: Any) -> Any:
    """Plain data with every text in it made visible."""
    if isinstance(found, dict):
        return {name: visible_all(value) for name, value in found.items()}
    if isinstance(found, list):
        return [visible_all(value) for value in found]
    return visible(found) if isinstance(found, str) else found
