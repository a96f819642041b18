"""How a trainer is called: a command line with placeholders, and the same line without the change."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from klinic.errors import BadUsage, did_you_mean

KNOWN = {
    "checkpoint", "out", "steps", "until", "seed", "flag", "value", "change", "fix", "python",
}  # fmt: skip
CHANGE = {"flag", "value", "change", "fix"}  # words that hold these are left out of the control
START = {"checkpoint"}  # and these where a run starts from scratch
NAMES = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """The words of a command, as a shell would split them; no shell is ever asked to run it."""

    words: tuple[str, ...]

    def names(self) -> set[str]:
        """Placeholders it uses."""
        return {name for word in self.words for name in NAMES.findall(word)}

    def filled(
        self, values: Mapping[str, str], *, change: bool = True, checkpoint: bool = True
    ) -> list[str]:
        """The command. Without ``change`` (the control) or ``checkpoint`` (from scratch) the words for it are left out.

        An option word right before a left-out value ("--set" of "--set {flag}={value}") goes with it.
        """
        gone = (set() if change else CHANGE) | (set() if checkpoint else START)
        found: list[str] = []
        for word in self.words:
            names = set(NAMES.findall(word))
            text = NAMES.sub(lambda m: values.get(m.group(1), ""), word)
            if not names & gone:
                # A whole override such as "--temperature 1.1" is several words.
                found += shlex.split(text) if word == "{change}" else [text]
            elif found and not text.startswith("-") and _lone_option(found[-1]):
                found.pop()
        return found


def _lone_option(word: str) -> bool:
    return word.startswith("-") and "=" not in word


def template(text: str, option: str, need: set[str]) -> Template:
    """Parse a command template. need: placeholders without which a run could not be told apart from the old one.

    Raises BadUsage for an unknown or a missing placeholder, or an unclosed quote.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as trouble:
        raise BadUsage(
            f"cannot be split into words ({trouble})", option, "close the quote"
        ) from None
    found = Template(words)
    if not words:
        raise BadUsage("the command is empty", option, 'write --command "python train.py ..."')
    for name in sorted(found.names() - KNOWN):
        raise BadUsage(
            f"unknown placeholder {{{name}}}",
            option,
            did_you_mean(name, KNOWN) or f"known: {', '.join(sorted(KNOWN))}",
        )
    for name in sorted(need - found.names()):
        raise BadUsage(f"the command does not hold {{{name}}}", option, WHY[name])
    if not found.names() & {"steps", "until"}:
        raise BadUsage(
            "nothing says when the run ends",
            option,
            "add {steps} (how many) or {until} (the last step)",
        )
    return found


WHY = {
    "out": "add {out}, or the run would write into the old run's folder",
    "checkpoint": "add {checkpoint}, or every run would start from scratch (then say --from-start)",
}

# The lab needs no template: it is a trainer like any other, whose command is known.
BUILT_IN = {
    "lab": (
        "{python} -m klinic lab resume {checkpoint} -o {out} --steps {steps} --set {flag}={value} --reseed {seed}",
        "{python} -m klinic lab resume {checkpoint} -o {out} --steps {steps} --fix {fix} --reseed {seed}",
    )
}
