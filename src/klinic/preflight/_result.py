"""What one check says, and how a check is made of a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klinic.text import fill, say_in, sentences

if TYPE_CHECKING:
    from klinic.preflight._given import Given

PASSED, FAILED, NOT_CHECKED = "passed", "failed", "not checked"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the report. status: passed, failed or not checked; missing: what to hand over, by name."""

    status: str
    sentence: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    name: str = ""

    def measured(self, lang: str = "en") -> str:
        """What was measured, or why nothing was."""
        if self.missing:
            return say_in("preflight", "missing", lang, what=self.wanted(lang))
        known = sentences("preflight", lang)
        key = f"{self.name}.{self.sentence}"
        return fill(known.get(key, known.get(self.sentence, "")), self.values)

    def todo(self, lang: str = "en") -> str:
        """What to do; empty where nothing is to be done."""
        if self.status == PASSED:
            return ""
        if self.missing:
            return ""
        known = sentences("preflight", lang)
        for key in (f"{self.name}.do-{self.sentence}", f"do-{self.sentence}", f"{self.name}.do"):
            if key in known:
                return fill(known[key], self.values)
        return ""

    def wanted(self, lang: str) -> str:
        """What is missing, one after the other; ``a|b``: either will do."""
        either, both = (say_in("preflight", key, lang) for key in ("or", "and"))
        return both.join(name.replace("|", either) for name in self.missing)


Judge = Callable[["Given"], Result]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its slug and its place in the order of seed 001 section 9.1, errors of the code first."""

    name: str
    place: int
    judge: Judge


def check(place: int) -> Callable[[Judge], Check]:
    """Make a check of a judging function; its name gives the slug."""

    def make(judge: Judge) -> Check:
        return Check(judge.__name__.replace("_", "-"), place, judge)

    return make


def passed(sentence: str = "good", **values: Any) -> Result:
    """All is well."""
    return Result(PASSED, sentence, values)


def failed(sentence: str, **values: Any) -> Result:
    """It is not."""
    return Result(FAILED, sentence, values)


def missing(*names: str) -> Result:
    """It could not be checked for want of these; ``a|b``: either will do."""
    return Result(NOT_CHECKED, missing=names)


def unclear(sentence: str, **values: Any) -> Result:
    """It could not be checked, and why."""
    return Result(NOT_CHECKED, sentence, values)
