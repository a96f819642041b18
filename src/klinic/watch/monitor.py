"""What one run's newest state means for its alerts: fired once a finding, updated, resolved; nothing is read or sent here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from klinic.diagnose import judge
from klinic.diagnosis import Diagnosis, Finding
from klinic.facts import SOME
from klinic.failures import SEVERITIES
from klinic.run import Run
from klinic.watch import edetector
from klinic.watch.envelope import outside

EVERY = 20  # steps from one diagnosis to the next
# Steps, and share of the run so far, from one diagnosis to the next while the run is short (our choice).
SOONEST, OFTEN = 5, 0.25
CONFIDENCES = ("certain", "likely", "possible")  # surest first
# A "possible" alone wakes nobody: it is shown, and mostly becomes more within 20 steps.
SURE = "likely"
# Diagnoses in a row that must be sure while fewer points are logged than a verdict rests on: 7 false alarms on 38 healthy public
# runs became 2 (benchmarks/live.py).
TWICE = 2
GONE = 2  # diagnoses in a row without a finding until it counts as resolved (our choice)
COOL_DOWN = 100  # steps after its end before the same failure may fire again (our choice)
# What an alarm of the e-detector is called while no failure explains it, and how severe it is: on the lab's healthy runs it was wrong.
UNNAMED, MILD = "outside-its-band", "caution"


class Told(msgspec.Struct):
    """What was said of one failure. severity "": nothing is firing now. seen: diagnoses in a row that were sure of it."""

    episode: int = 0
    severity: str = ""
    missing: int = 0
    seen: int = 0
    ended: int | None = None


class State(msgspec.Struct):
    """All that is remembered of a run between two looks; it is kept in the database as JSON.

    seen: role -> last step counted in. e: role -> the detector's value. beyond: roles whose alarm stands.
    """

    seen: dict[str, int] = {}
    e: dict[str, float] = {}
    beyond: dict[str, int] = {}
    diagnosed: int | None = None
    settled: int | None = None
    events: int = 0
    last: int | None = None
    told: dict[str, Told] = {}


@dataclass(frozen=True, slots=True)
class Change:
    """One alert to send. kind: firing, updated or resolved. metric: of an alarm that no failure explains."""

    kind: str
    failure: str
    episode: int
    severity: str
    step: int
    finding: Finding | None = None
    metric: str | None = None
    onset: int | None = None

    @property
    def key(self) -> str:
        """The same alert always has the same key, also when it is worked out again after a crash."""
        return f"{self.failure}/{self.episode}/{self.kind}/{self.severity}"


class Monitor:
    """Watches one run. every: steps between diagnoses. alert_on, confidence: the least that is told. mean_steps: see edetector."""

    def __init__(
        self,
        state: State | None = None,
        every: int = EVERY,
        alert_on: str = "act",
        cool_down: int = COOL_DOWN,
        confidence: str = SURE,
        mean_steps: int = edetector.MEAN_STEPS,
        **chosen: Any,
    ) -> None:
        self.state = state or State()
        self.every, self.cool_down, self.mean_steps = every, cool_down, mean_steps
        self.sure = CONFIDENCES[: CONFIDENCES.index(confidence) + 1]
        self.told_from = SEVERITIES[: SEVERITIES.index(alert_on) + 1]
        self.chosen = chosen  # only, skip and thresholds of the diagnosis
        self.diagnosis: Diagnosis | None = None

    def look(
        self, run: Run, settled: bool = False, answer: Diagnosis | None = None
    ) -> list[Change]:
        """Count the run's new steps in; the alerts that follow from them.

        settled: nothing more seems to come. answer: the run's diagnosis where it is known already.
        """
        state = self.state
        if state.last is not None and run.last < state.last:
            self._begun_anew(run)
        alarmed = self._count(run)
        state.last = run.last
        if (
            state.diagnosed is None
            or run.last - state.diagnosed >= self._pace(run)
            or alarmed
            or (settled and run.last != state.settled)
            or len(run.events) != state.events
        ):
            self.diagnosis = answer or judge(run, **self.chosen)
            state.diagnosed, state.events = run.last, len(run.events)
            state.settled = run.last if settled else None
            return self._changes(self.diagnosis, alarmed, settled)
        if self.diagnosis is None:  # after a restart: to be shown, for it was told
            self.diagnosis = answer or judge(run, **self.chosen)
        return []

    def _pace(self, run: Run) -> float:
        """Steps until the next diagnosis: fewer at the start of a run, where 20 steps are a large part of it."""
        return min(self.every, max(SOONEST, OFTEN * (run.last - run.first)))

    def _begun_anew(self, run: Run) -> None:
        """The log is shorter than it was: it was cut, or the run went back to a checkpoint."""
        state = self.state
        state.seen = {role: min(step, run.last) for role, step in state.seen.items()}
        state.diagnosed = None

    def _count(self, run: Run) -> dict[str, int]:
        """Advance the detectors; role -> step of its alarm, of the roles that alarm now for the first time."""
        state, found = self.state, outside(run)
        level = len(found) * self.mean_steps
        alarmed = {}
        for role, (steps, flags) in found.items():
            new = steps > state.seen.get(role, -1)
            if not new.any():
                continue
            e, at = edetector.advance(state.e.get(role, 0.0), flags[new].tolist(), level)
            state.seen[role] = int(steps[-1])
            state.e[role] = e
            if at is not None and role not in state.beyond:
                alarmed[role] = state.beyond[role] = int(steps[new][at])
            elif e < 1:
                state.beyond.pop(role, None)
        return alarmed

    def _changes(self, answer: Diagnosis, alarmed: dict[str, int], settled: bool) -> list[Change]:
        step = answer.run.last
        present = {
            f.failure: f
            for f in answer.findings
            if f.status == "present" and f.severity in self.told_from
        }
        followed = {f.failure for f in answer.findings if f.status in ("present", "consequence")}
        needed = 1 if settled or answer.run.logged >= SOME else TWICE
        for slug, told in self.state.told.items():
            told.seen = told.seen if slug in present else 0
        told_now = [self._tell(finding, step, needed, settled) for finding in present.values()]
        changes = [change for change in told_now if change is not None]
        explained = any(f.status in ("present", "consequence") for f in answer.findings)
        for role, at in {} if explained else alarmed.items():
            if MILD in self.told_from and not (told := self._told(f"{UNNAMED}:{role}")).severity:
                if not self._cooling(told, step):
                    told.episode, told.severity = told.episode + 1, MILD
                    name = f"{UNNAMED}:{role}"
                    changes.append(
                        Change("firing", name, told.episode, MILD, step, metric=role, onset=at)
                    )
        for slug, told in self.state.told.items():
            if not told.severity:
                continue
            role = slug.partition(":")[2]
            still = slug in followed if not role else role in self.state.beyond and not explained
            told.missing = 0 if still else told.missing + 1
            if told.missing >= GONE:
                changes.append(
                    Change("resolved", slug, told.episode, told.severity, step, metric=role or None)
                )
                told.severity, told.missing, told.ended = "", 0, step
        return changes

    def _cooling(self, told: Told, step: int) -> bool:
        """A log that begins anew, at a lower step, begins without a cool-down."""
        return told.ended is not None and 0 <= step - told.ended < self.cool_down

    def _told(self, slug: str) -> Told:
        return self.state.told.setdefault(slug, Told())

    def _tell(self, finding: Finding, step: int, needed: int, settled: bool) -> Change | None:
        told = self._told(finding.failure)
        severity = finding.severity or ""
        if told.severity:
            worse = SEVERITIES.index(severity) < SEVERITIES.index(told.severity)
            if not worse or finding.confidence not in self.sure:
                return None
            kind = "updated"
        else:
            told.seen = told.seen + 1 if settled or finding.confidence in self.sure else 0
            if told.seen < needed or self._cooling(told, step):
                return None
            told.episode += 1
            kind = "firing"
        told.severity, told.missing, told.seen = severity, 0, 0
        onset = finding.onset.step if finding.onset else None
        return Change(kind, finding.failure, told.episode, severity, step, finding, onset=onset)
