"""Running both arms from one checkpoint, and making sure that the change really arrived."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klinic.compare.pairs import pairs
from klinic.compare.settings import Changed, differences, same
from klinic.compare.smoke import BY_STEP
from klinic.configuration import flag_value
from klinic.errors import KlinicError, UnreadableInput
from klinic.rescue.ledger import Ledger
from klinic.rescue.plan import Plan, Treatment, value_text
from klinic.rescue.process import Done, execute, failed, partial
from klinic.rescue.template import Template
from klinic.run import Run

Told = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Commands:
    """The templates of a rescue. fix: for actions that are no knob; control: where leaving words out is not enough."""

    change: Template
    fix: Template | None = None
    control: Template | None = None


@dataclass
class Arms:
    """Both arms of a rescue: where they lie, and how to run one.

    options: how a log is read (trainer, mapping). tell: called with a kind and details while runs go on. retry: run a
    command again that failed before.
    """

    root: Path
    plan: Plan
    commands: Commands
    ledger: Ledger
    timeout: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tell: Told = lambda *_, **__: None
    retry: bool = False

    def control(self, seed: int) -> Run | None:
        """One resample of the unchanged configuration; shared by all treatments from this checkpoint."""
        out = self.root / f"control-from-{self.plan.start}-to-{self._until}" / str(seed)
        return self._run(out, "control", seed, self.plan.steps, None)

    def change(self, treatment: Treatment, seed: int) -> Run | None:
        """One resample with the change."""
        out = self.root / self._folder(treatment) / f"change-{seed}"
        return self._run(out, "change", seed, self.plan.steps, treatment)

    def onward(self, treatment: Treatment, more: int) -> Run | None:
        """The change from the same checkpoint on, ``more`` steps further: one log without a seam."""
        out = self.root / self._folder(treatment) / f"on-{more}"
        return self._run(out, "on", 1, self.plan.steps + more, treatment)

    @property
    def _until(self) -> int:
        return self.plan.start + self.plan.steps

    def _folder(self, treatment: Treatment) -> str:
        return f"{treatment.name}-from-{self.plan.start}-to-{self._until}"

    def _run(
        self, out: Path, role: str, seed: int, steps: int, treatment: Treatment | None
    ) -> Run | None:
        """A finished run, run now if it is not there; None where its command failed or left nothing to read."""
        place = out
        # Where the failure is that a run breaks off, a control that breaks off is a finished one.
        breaks = self.plan.diagnosis.main is not None and (
            self.plan.diagnosis.main.failure in BY_STEP
        )
        if breaks and role == "control" and failed(out).exists():
            place = failed(out)
        if place.exists():
            self._found(place, role, seed)
        else:
            words = self._words(out, seed, steps, treatment)
            done = None if self.retry else self._failed_before(out, words)
            if done is None:
                self.tell("running", role=role, seed=seed, out=out, treatment=treatment)
                done = execute(words, out, self.timeout, lambda s: self.tell("tick", seconds=s))
                self._write(done, role, seed, treatment, words)
            else:
                self.tell("failed", role=role, done=done, treatment=treatment, again=True)
            if not done.well:
                if role == "control" and not breaks:
                    raise KlinicError(
                        _ended(done),
                        str(done.folder),
                        "the unchanged run fails, so nothing can be compared; mended, say --retry; "
                        "its last lines are:\n  " + "\n  ".join(done.tail),
                    )
                if role != "control":
                    return None
            place = done.folder
        return self._read(place, role == "control" and not breaks)

    def _failed_before(self, out: Path, words: list[str]) -> Done | None:
        """How this very command failed when it was last run here; a run of hours is not thrown after another."""
        folder = str(failed(out).relative_to(self.root))
        for told in reversed(self.ledger.events):
            if told.get("event") == "ran" and told.get("folder") == folder:
                if told.get("command") != words or not failed(out).exists():
                    return None
                tail = tuple(told.get("last_lines", ()))
                return Done(told.get("exit"), told.get("seconds", 0.0), tail, failed(out))
        return None

    def _found(self, place: Path, role: str, seed: int) -> None:
        """A kill between the end of a run and its line in the ledger: the line is made up for."""
        folder = str(place.relative_to(self.root))
        if not any(
            e.get("folder") == folder and e.get("event") == "ran" for e in self.ledger.events
        ):
            self.ledger.once("found-finished", role=role, seed=seed, folder=folder)

    def _read(self, place: Path, needed: bool) -> Run | None:
        from klinic.read import read

        try:
            return read(place, **self.options)
        except UnreadableInput as trouble:
            if not needed:
                return None
            raise UnreadableInput(
                "the unchanged run left no log that can be read",
                str(place),
                f"{trouble.what}; does the command write its log to {{out}} or print it?",
            ) from None

    def _write(
        self, done: Done, role: str, seed: int, treatment: Treatment | None, words: list[str]
    ) -> None:
        self.ledger.write(
            "ran",
            role=role,
            treatment=treatment.name if treatment else None,
            change=treatment.text if treatment else None,
            seed=seed,
            command=words,
            folder=str(done.folder.relative_to(self.root)),
            exit=done.exit,
            timed_out=done.exit is None,
            seconds=done.seconds,
            **({} if done.well else {"last_lines": list(done.tail)}),
        )
        if not done.well:
            self.tell("failed", role=role, done=done, treatment=treatment)

    def _words(self, out: Path, seed: int, steps: int, treatment: Treatment | None) -> list[str]:
        point = self.plan.checkpoint
        values = {
            "python": sys.executable,
            "checkpoint": str(Path(point.path).resolve()) if point is not None else "",
            "out": str(partial(out)),
            "steps": str(steps),
            "until": str(self.plan.start + steps),
            "seed": str(seed),
        }
        chosen = self.commands.change
        if treatment is None:
            chosen = self.commands.control or chosen
        elif treatment.how == "fix":
            assert self.commands.fix is not None
            chosen = self.commands.fix
        if treatment is not None:
            action = treatment.action
            values |= {
                "fix": treatment.fix,
                "flag": action.flag or "",
                "value": value_text(action.new),
            }
            values["change"] = action.command or f"{action.flag}={value_text(action.new)}"
        return chosen.filled(values, change=treatment is not None, checkpoint=point is not None)


def _ended(done: Done) -> str:
    return (
        "the command ran out of time"
        if done.exit is None
        else f"the command ended with exit code {done.exit}"
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """Whether a change reached the run. changed: settings that differ from the control's, None where not stated."""

    arrived: bool
    why: str
    changed: tuple[Changed, ...] | None

    @property
    def outcome(self) -> str:
        """What an attempt ends as that is not judged."""
        return self.why if self.why == "no-effect" else "not-arrived"


def arrival(control: Run, new: Run, treatment: Treatment) -> Arrival:
    """Compare an arm with the control of the same seed: stated settings first, then the curves bit by bit.

    A resumed run can put its own settings, or the fault itself, back over the change; it is then the control
    under another name (three of our first arms were).
    """
    changed = differences(control, new)
    found = pairs(control, new)[0]
    action = treatment.action
    stated = flag_value(new.config.get(action.knob)) if treatment.how == "set" else None
    if found and all(pair.identical for pair in found):
        # A limit that nothing reaches, or a run that is lost at its first update, looks like a change never made.
        heard = changed and (treatment.how == "fix" or same(stated, action.new))
        return Arrival(False, "no-effect" if heard else "identical", changed)
    if stated is not None and not same(stated, action.new):
        # A knob in other units than the flag moved all the same.
        before = flag_value(control.config.get(action.knob))
        if before is None or same(before, stated):
            return Arrival(False, "stated", changed)
    return Arrival(True, "", changed)
