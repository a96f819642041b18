"""What all checks say together, as text for a terminal and as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from klinic import __version__
from klinic.errors import KlinicError
from klinic.preflight._result import FAILED, NOT_CHECKED, PASSED, Result
from klinic.render._layout import columns, pad, wrap
from klinic.text import say_in

EXIT = {PASSED: 0, FAILED: 1, NOT_CHECKED: 3}
COLOURS = {PASSED: "32", FAILED: "31", NOT_CHECKED: "2"}
_say = partial(say_in, "preflight")


class PreflightFailed(KlinicError):
    """A check has failed, and the loop asked to stop then."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results in the order in which to mend. ``print`` shows them in English."""

    results: tuple[Result, ...]

    @property
    def failed(self) -> tuple[Result, ...]:
        """What failed, the first to mend first."""
        return self._with(FAILED)

    @property
    def status(self) -> str:
        """failed: one did; not checked: nothing was given to check; else passed."""
        if self.failed:
            return FAILED
        return PASSED if self._with(PASSED) else NOT_CHECKED

    @property
    def exit_code(self) -> int:
        """0 all that was checked passed, 1 one failed, 3 nothing could be checked."""
        return EXIT[self.status]

    def _with(self, status: str) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.status == status)

    def raise_if_failed(self) -> None:
        """Raise PreflightFailed, which names them, where checks failed."""
        if self.failed:
            names = ", ".join(r.name for r in self.failed)
            raise PreflightFailed(
                f"{len(self.failed)} checks failed: {names}",
                "preflight",
                "print the report: it says what to do",
            )

    def __str__(self) -> str:
        return self.text()

    def text(self, lang: str = "en", colour: bool = False) -> str:
        """Lines of at most 80 columns: those that failed or passed, then what was not checked."""
        counts = {status: len(self._with(status)) for status in EXIT}
        head = _say("head", lang, **{status.replace(" ", "_"): n for status, n in counts.items()})
        checked = [r for r in self.results if r.status != NOT_CHECKED]
        left = self._with(NOT_CHECKED)
        widest = max((columns(r.name) for r in self.results), default=0)
        lines = [wrap(head, "", "  ")]
        for part in (checked, left):
            lines += ["", *(self._line(r, widest, lang, colour) for r in part)] if part else []
        if self.failed:
            lines += ["", wrap(_say("mend", lang, name=self.failed[0].name), "", "  ")]
        return "\n".join(lines) + "\n"

    def _line(self, result: Result, widest: int, lang: str, colour: bool) -> str:
        word = _say(f"word.{result.status.replace(' ', '-')}", lang)
        width = max(columns(_say(f"word.{s.replace(' ', '-')}", lang)) for s in EXIT)
        lead = f"  {pad(word, width)}  {pad(result.name, widest)}  "
        blank = " " * columns(lead)
        told = wrap(result.measured(lang), lead, blank)
        if todo := result.todo(lang):
            told += "\n" + wrap(todo, blank + "-> ", blank + "   ")
        return (
            told.replace(word, f"\x1b[{COLOURS[result.status]}m{word}\x1b[0m", 1)
            if colour
            else told
        )

    def as_dict(self, lang: str = "en") -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "schema_version": 1,
            "klinic_version": __version__,
            "lang": lang,
            "status": self.status,
            "checks": [
                {
                    "name": r.name,
                    "status": r.status,
                    "sentence": r.sentence or None,
                    "values": r.values,
                    "missing": list(r.missing),
                    "text": r.measured(lang),
                    "todo": r.todo(lang) or None,
                }
                for r in self.results
            ],
        }
