"""What can go wrong, and how it is said: what, where, what to do.

KlinicError
├── UnreadableInput   a file or folder that cannot be read as a run (exit 2)
├── BadUsage          an option, a slug or a setting that does not exist (exit 2)
└── MissingExtra      a feature whose library is not installed (exit 2)
"""

from __future__ import annotations

from collections.abc import Iterable


class KlinicError(Exception):
    """Base of every error klinic raises on purpose: ``what`` went wrong, ``where``, and a ``hint``."""

    def __init__(self, what: str, where: str = "", hint: str = "") -> None:
        super().__init__(what if not where else f"{where}: {what}")
        self.what, self.where, self.hint = what, where, hint


class UnreadableInput(KlinicError):
    """The input is not a log klinic can read."""


class BadUsage(KlinicError):
    """The command asks for something that does not exist."""


class MissingExtra(KlinicError):
    """An optional library is needed; the hint names the extra."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the nearest known word, or the empty string."""
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else ""
