"""One failure per file, its page beside it; found by walking this folder.

A failure is a function of the facts, named like its file, that returns a :class:`Verdict`:

    need     all must hold         (``facts.need`` says which metric is missing, and the failure is "not checked")
    support  each adds confidence  (evidence that says "for")
    veto     any one kills it      (evidence that says "against": printed as "ruled out, because ...")
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from klinic.compiled import plugins
from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.facts import Facts

# Ties between causes: implementation errors first, then scale, step size, and the reward last (seed 001 section 9).
STAGES = ("implementation", "data", "scale", "step", "reward", "outcome", "benign")
AS_SAID = "as said"  # a next value that only the evidence gives (its values' "next")
SEVERITIES = ("stop", "act", "caution")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of the report. metric: a role; says: for or against; sentence: a key of the failure's page."""

    metric: str
    says: str
    sentence: str
    word: str = "flat"
    before: float | None = None
    after: float | None = None
    onset: int | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one failure says of a run: status present, benign or ruled_out."""

    status: str
    severity: str | None = None
    onset: Onset | None = None
    evidence: tuple[Evidence, ...] = ()
    sure: bool = False  # so large that a short run is evidence enough
    slice: str | None = None
    side: str | None = None
    treatments: tuple[str, ...] = ()  # other than the card's own order


@dataclass(frozen=True, slots=True)
class Treatment:
    """One possible action: a knob and its next value, or an action that is no knob."""

    kind: str  # set, fix-reward, fix-code, change-data, inspect
    knob: str
    scale: float | None = None  # new = old * scale
    add: float | None = None  # new = old + add
    to: Any = None  # new = to
    least: Any = None  # new where the old value is not known
    why: str = ""  # the action's sentence, where it is not the knob's own
    restart: str = "must"
    only_if: str = ""  # "clips", "several-updates", "bonus", "truncates", a side, a case: see advise; else a sentence or a side of the finding


@dataclass(frozen=True, slots=True)
class Card:
    """One failure: its words, its place among causes, its treatments in order, and what it brings about."""

    slug: str
    family: str
    stage: str
    judge: Callable[[Facts], Verdict]
    treatments: tuple[Treatment, ...] = ()
    explains: tuple[str, ...] = ()
    restart: str = "must"
    stem: str = ""


def failure(
    *,
    family: str,
    stage: str,
    treatments: tuple[Treatment, ...] = (),
    explains: str = "",
    restart: str = "must",
) -> Callable[[Callable[[Facts], Verdict]], Card]:
    """Make a card of a judging function; its name gives the slug."""

    def make(judge: Callable[[Facts], Verdict]) -> Card:
        stem = judge.__name__
        return Card(
            stem.replace("_", "-"),
            family,
            stage,
            judge,
            treatments,
            tuple(explains.split()),
            restart,
            stem,
        )

    return make


def set_knob(knob: str, **how: Any) -> Treatment:
    """Turn one knob."""
    return Treatment("set", knob, **how)


@cache
def cards() -> dict[str, Card]:
    """Every failure by slug."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        card = getattr(importlib.import_module(f"{__name__}.{module.name}"), module.name, None)
        if isinstance(card, Card):
            found[card.slug] = card
    for point in plugins("klinic.failures"):
        card = point.load()
        found[card.slug] = card
    return found


def seen(
    facts: Facts, role: str, says: str, sentence: str, shape: Shape | None = None, **values: Any
) -> Evidence:
    """Evidence from the curve that plays ``role`` (or from ``shape``)."""
    curve = shape if shape is not None else facts.shape(role)
    if curve is None:
        return Evidence(role, says, sentence, values=values)
    at = curve.onset if curve.changed else None
    return Evidence(
        role, says, sentence, curve.word, curve.before, curve.after, at.step if at else None, values
    )


def present(severity: str, onset: Onset | None, *evidence: Evidence | None, **more: Any) -> Verdict:
    """The failure is there."""
    return Verdict("present", severity, onset, tuple(e for e in evidence if e is not None), **more)


def benign(onset: Onset | None, *evidence: Evidence | None) -> Verdict:
    """It looks alarming and is fine."""
    return Verdict("benign", None, onset, tuple(e for e in evidence if e is not None))


def ruled_out(*evidence: Evidence | None) -> Verdict:
    """It is not there, because of the evidence."""
    return Verdict("ruled_out", None, None, tuple(e for e in evidence if e is not None))


def against(verdict: Verdict) -> Verdict:
    """The same verdict with all its evidence speaking against."""
    return replace(verdict, evidence=tuple(replace(e, says="against") for e in verdict.evidence))


def early(facts: Facts) -> Onset:
    """The onset of what is there from the first step on."""
    return Onset(facts.run.first, facts.run.first, facts.run.first)
