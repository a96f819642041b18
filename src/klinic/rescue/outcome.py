"""What a rescue is asked for, and how it ended: plain data for the renderer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from klinic.compare.smoke import STEPS, Smoke
from klinic.diagnosis import Diagnosis
from klinic.rescue.plan import Plan, Treatment

ON = 100  # steps after which the cured run is diagnosed again
FURTHER = 2  # values beyond the diagnosis' own: with further.LEAST a factor of 16


@dataclass(frozen=True, slots=True)
class Attempt:
    """One treatment and what came of it.

    outcome: rescued, better (but the failure came back), other (it is gone, and another came), worse, inconclusive,
    no-effect (it arrived, and every curve is the control's), not-arrived, failed, person, inspect.
    after: the diagnosis of the run that went on.
    """

    treatment: Treatment
    outcome: str
    verdict: Smoke | None = None
    after: Diagnosis | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a rescue ended: rescued, not-rescued, person (a person must fix something first), healthy, planned."""

    status: str
    diagnosis: Diagnosis
    folder: Path | None
    plan: Plan | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for.

    command, fix_command, control_command: templates; None: what the trainer is known to take. further: how many values
    beyond the diagnosis' own a number is turned to. retry: run again what failed before.
    """

    command: str | None = None
    fix_command: str | None = None
    control_command: str | None = None
    steps: int = STEPS
    on: int = ON
    resamples: int | None = None
    timeout: float | None = None
    checkpoint: str | None = None
    from_start: bool = False
    dry: bool = False
    anyway: bool = False
    further: int = FURTHER
    retry: bool = False
