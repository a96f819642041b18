"""What klinic says of a run: findings, one first action, where to go back to. Plain data for every renderer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from klinic.curves.onset import Onset
from klinic.failures import Evidence
from klinic.run import Checkpoint, Run


@dataclass(frozen=True, slots=True)
class Missing:
    """A metric that would decide, and how this trainer logs it (a flag, or a clause in each language)."""

    metric: str
    how: str = ""
    clause: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One failure's status: present, consequence, ruled_out, not_checked or benign."""

    failure: str
    status: str
    severity: str | None = None
    confidence: str | None = None
    onset: Onset | None = None
    because_of: str | None = None
    slice: str | None = None
    side: str | None = None
    evidence: tuple[Evidence, ...] = ()
    missing: tuple[Missing, ...] = ()
    crashed: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One change. kind: set, fix-reward, fix-code, change-data, inspect, go-back."""

    kind: str
    knob: str
    flag: str | None = None
    old: Any = None
    new: Any = None
    command: str | None = None
    restart: str = "must"
    why: str = ""
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Smoke:
    """A short run with the one change, against the same steps of this run. flags: how the trainer is told so."""

    steps: int
    first: int
    last: int
    metric: str
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """Something to mind that is no failure: a lang key and its values."""

    metric: str | None
    sentence: str
    values: dict[str, Any] = field(default_factory=dict)


STATUSES = ("failing", "caution", "unclear", "healthy")  # worst first


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The whole answer for one run."""

    run: Run
    status: str
    findings: tuple[Finding, ...]
    first_mover: str | None = None
    first_action: Action | None = None
    then: tuple[Action, ...] = ()
    roll_back_to: Checkpoint | None = None
    smoke: Smoke | None = None
    notes: tuple[Note, ...] = ()

    @property
    def main(self) -> Finding | None:
        """The first present finding: the cause."""
        return next((f for f in self.findings if f.status == "present"), None)
