"""What stands in an address, made sure of."""

from __future__ import annotations

LONGEST = 15  # digits: more than any step has


def number(text: str | None) -> int | None:
    """A whole number, None where it is none."""
    text = (text or "").strip()
    plain = text.removeprefix("-")
    return int(text) if plain.isdecimal() and len(plain) < LONGEST else None
