"""The rescue itself: one change after the other, each beside the control, until one of them cures the run.

Everything that takes long is a folder that is either finished or not there; everything else is worked out again from the
folders. So a rescue that was interrupted at any moment goes on where it stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from klinic.compare.settings import home
from klinic.compare.smoke import Smoke, smoke
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage
from klinic.rescue.arms import Arms, Commands, Told, arrival
from klinic.rescue.ledger import Ledger, opened
from klinic.rescue.plan import Plan, Treatment, plan
from klinic.rescue.process import clear
from klinic.rescue.template import BUILT_IN, template
from klinic.run import Run

STEPS = 20  # compared steps (seeds: "run 20 smoke steps, then lengthen")
ON = 100  # steps after which the cured run is diagnosed again
RESAMPLES = {"lab": 2}  # where a run costs seconds; elsewhere 1
ENOUGH = 40  # points from which a diagnosis of the run that went on says something (DESIGN: "40 and more")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One treatment and what came of it.

    outcome: rescued, better (but the failure came back), other (it is gone, and another came), worse, inconclusive, not-arrived, failed, person, inspect.
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
    """What the user asked for. command, fix_command, control_command: templates; None: what the trainer is known to take."""

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


def rescue(
    path: str | Path,
    out: str | Path | None = None,
    wish: Wish | None = None,
    *,
    tell: Told = lambda *_, **__: None,
    **options: Any,
) -> Outcome:
    """Diagnose a run, go back, and try one change after the other beside a control.

    out: the rescue's folder, by default RUN-rescue beside the run; the run's own folder is never written to. The
    same call again goes on where it was interrupted. Raises UnreadableInput, and BadUsage for a command or a folder
    that will not do.
    """
    wish = wish or Wish()
    found, folder = _diagnosed(path, out, options)
    if found.main is None or (found.status != "failing" and not wish.anyway):
        return Outcome("healthy", found, None)
    commands = _commands(found, wish)
    made = plan(
        found,
        steps=wish.steps,
        can_fix=commands is not None and commands.fix is not None,
        checkpoint=wish.checkpoint,
        from_start=wish.from_start,
    )
    if wish.dry:
        return Outcome("planned", found, folder, made)
    first = next((t for t in made.treatments if t.how != "inspect"), None)
    if commands is None:
        if first is None or first.how == "person":
            return _stopped(found, folder, made, Path(path))
        raise BadUsage(
            f"nothing says how {found.run.trainer.title} is started",
            "klinic rescue",
            'add --command "python train.py --resume {checkpoint} {flag}={value} --out {out} --max-steps {until}"',
        )
    if made.checkpoint is None and not wish.from_start:
        raise BadUsage(
            "no checkpoint was found",
            str(path),
            "--checkpoint DIR names one; --from-start tries each change from scratch",
        )
    with _alone(folder):
        ledger = opened(folder, _home(path))
        for half in clear(folder):
            ledger.write(
                "thrown-away", folder=half, why="half-run when the last rescue was interrupted"
            )
        _tell_plan(ledger, made)
        arms = Arms(folder, made, commands, ledger, wish.timeout, options, tell)
        attempts = _tried(arms, wish)
        status = _status(attempts)
        ledger.once(
            "end", status=status, tried=[f"{a.treatment.text}: {a.outcome}" for a in attempts]
        )
    return Outcome(status, found, folder, made, tuple(attempts))


def carried_on(
    path: str | Path,
    new: str | Path,
    out: str | Path | None = None,
    wish: Wish | None = None,
    **options: Any,
) -> Outcome:
    """Judge a run that a person made after fixing what no flag fixes, and write it into the same ledger."""
    from klinic.diagnose import judge
    from klinic.read import read

    wish = wish or Wish()
    found, folder = _diagnosed(path, out, options)
    if found.main is None:
        return Outcome("healthy", found, None)
    made = plan(found, steps=wish.steps, can_fix=True, checkpoint=wish.checkpoint)
    run = read(new, **options)
    with _alone(folder):
        ledger = opened(folder, _home(path))
        kinds = [t for t in made.treatments if t.how == "fix"] or list(made.treatments)
        if not kinds:
            raise BadUsage("the diagnosis names no change", str(path), "use klinic smoke OLD NEW")
        treatment = replace(kinds[0], text=f"--continue {new}")
        controls = [
            read(place, **options)
            for place in sorted(folder.glob("control-from-*/*"))
            if place.is_dir() and place.name.isdigit()
        ]
        verdict = smoke(
            found, [run], controls, steps=made.steps, kind=treatment.action.kind, include_old=True
        )
        ledger.once(
            "judged", treatment="continue", folder=str(Path(new).resolve()), **_figures(verdict)
        )
        after = judge(run) if run.logged >= ENOUGH else None
        attempt = _concluded(ledger, treatment, verdict, after, Path(new))
        status = "rescued" if attempt.outcome == "rescued" else "not-rescued"
        ledger.once("end", status=status, tried=[f"{treatment.text}: {attempt.outcome}"])
    return Outcome(status, found, folder, made, (attempt,))


def _diagnosed(
    path: str | Path, out: str | Path | None, options: Mapping[str, Any]
) -> tuple[Diagnosis, Path]:
    from klinic.diagnose import diagnose

    if str(path) == "-":
        raise BadUsage(
            "a rescue needs the run's folder", "klinic rescue", "name the folder or its log"
        )
    found = diagnose(path, **options)
    home = _home(path)
    folder = Path(out) if out is not None else home.with_name(home.name + "-rescue")
    folder = folder.resolve()
    if folder == home or home in folder.parents:
        raise BadUsage(
            "it lies in the run's own folder", str(folder), "name a folder outside with -o"
        )
    return found, folder


def _home(path: str | Path) -> Path:
    place = Path(path).resolve()
    return place if place.is_dir() else place.parent


def _commands(found: Diagnosis, wish: Wish) -> Commands | None:
    need = {"out"} if wish.from_start else {"out", "checkpoint"}
    told, fix = BUILT_IN.get(found.run.trainer.name, (None, None))
    if wish.command is not None:
        told, fix = wish.command, wish.fix_command
    else:
        fix = wish.fix_command or fix
    if told is None:
        return None
    return Commands(
        template(told, "--command", need),
        template(fix, "--fix-command", need) if fix is not None else None,
        template(wish.control_command, "--control-command", need) if wish.control_command else None,
    )


def _tell_plan(ledger: Ledger, made: Plan) -> None:
    main, point = made.diagnosis.main, made.checkpoint
    assert main is not None
    onset = main.onset
    ledger.once(
        "diagnosed",
        failure=main.failure,
        severity=main.severity,
        confidence=main.confidence,
        onset=[onset.step, onset.low, onset.high] if onset is not None else None,
        first_mover=made.toward.metric if made.toward else None,
        changes=[t.text for t in made.treatments],
    )
    ledger.once(
        "go-back",
        checkpoint=point.path if point is not None else None,
        step=made.start,
        before_onset=made.before_onset,
        steps=made.steps,
        shows=made.shows,
    )


def _tried(arms: Arms, wish: Wish) -> list[Attempt]:
    attempts: list[Attempt] = []
    for treatment in arms.plan.treatments:
        if treatment.how == "inspect":
            arms.ledger.once("skipped", treatment=treatment.name, why=treatment.action.why)
            attempts.append(Attempt(treatment, "inspect"))
            continue
        if treatment.how == "person":
            arms.ledger.once("needs-person", treatment=treatment.name, why=treatment.action.why)
            attempts.append(Attempt(treatment, "person"))
            if not any(a.treatment.how in ("set", "fix") for a in attempts):
                break  # the first thing to do is no flag: turning others would only hide it
            continue
        attempt = _try(arms, treatment, wish)
        arms.ledger.once("attempt-over", treatment=treatment.name, outcome=attempt.outcome)
        arms.tell("attempt", attempt=attempt)
        attempts.append(attempt)
        if attempt.outcome == "rescued":
            return attempts
    return [_last_resort(arms, attempt, wish) for attempt in attempts]


def _last_resort(arms: Arms, attempt: Attempt, wish: Wish) -> Attempt:
    """A repair that so few steps could not judge goes on all the same, once nothing else is left.

    It is no guess at a knob: a hole in the reward may cost no accuracy within them, and a flat curve turns late. The
    longer run is then diagnosed as any other.
    """
    verdict = attempt.verdict
    if attempt.treatment.how != "fix" or attempt.outcome != "inconclusive" or verdict is None:
        return attempt
    run = arms.onward(attempt.treatment, wish.on)
    if run is None:
        return attempt
    from klinic.diagnose import judge

    arms.ledger.once("went-on-all-the-same", treatment=attempt.treatment.name)
    return _concluded(arms.ledger, attempt.treatment, verdict, judge(run), home(run))


def _try(arms: Arms, treatment: Treatment, wish: Wish) -> Attempt:
    arms.ledger.once(
        "attempt", treatment=treatment.name, change=treatment.text, why=treatment.action.why
    )
    made, count = (
        arms.plan,
        wish.resamples or RESAMPLES.get(arms.plan.diagnosis.run.trainer.name, 1),
    )
    controls: list[Run] = []
    news: list[Run] = []
    for seed in range(1, count + 1):
        control = arms.control(seed)
        new = arms.change(treatment, seed)
        if new is None:
            return Attempt(treatment, "failed")
        if control is not None:
            controls.append(control)
            here = arrival(control, new, treatment)
            if not here.arrived:
                arms.ledger.once("not-arrived", treatment=treatment.name, seed=seed, why=here.why)
                return Attempt(treatment, "not-arrived")
        news.append(new)
    verdict = smoke(
        made.diagnosis,
        news,
        controls,
        steps=made.steps,
        start=_begin(made, news),
        kind=treatment.action.kind,
        include_old=made.checkpoint is not None,
        toward=made.toward,
    )
    arms.ledger.once("judged", treatment=treatment.name, change=treatment.text, **_figures(verdict))
    if verdict.verdict != "better":
        outcome = "not-arrived" if verdict.reason == "not-arrived" else verdict.verdict
        return Attempt(treatment, outcome, verdict)
    arms.tell("judged", verdict=verdict)
    run = arms.onward(treatment, wish.on)
    if run is None:
        return Attempt(treatment, "failed", verdict)
    from klinic.diagnose import judge

    return _concluded(arms.ledger, treatment, verdict, judge(run), home(run))


def _begin(made: Plan, news: list[Run]) -> int:
    """The first step after the checkpoint: a trainer that keeps the old history in its log began long before."""
    first = max(run.first for run in news)
    return first if made.checkpoint is None or first >= made.start else made.start + 1


def _concluded(
    ledger: Ledger, treatment: Treatment, verdict: Smoke, after: Diagnosis | None, folder: Path
) -> Attempt:
    """Rescued if the failure is not in the run that went on, and nothing else is."""
    if after is None:
        return Attempt(treatment, verdict.verdict, verdict, None, folder)
    still = [f.failure for f in after.findings if f.status in ("present", "consequence")]
    gone = verdict.failure not in still and after.status in ("healthy", "caution")
    ledger.once(
        "diagnosed-again", treatment=treatment.name, status=after.status, found=still, gone=gone
    )
    outcome = "rescued" if gone and verdict.verdict != "worse" else verdict.verdict
    if outcome == "better" and verdict.failure not in still:
        outcome = "other"
    return Attempt(treatment, outcome, verdict, after, folder)


def _status(attempts: list[Attempt]) -> str:
    outcomes = [a.outcome for a in attempts]
    if "rescued" in outcomes:
        return "rescued"
    return "person" if "person" in outcomes else "not-rescued"


def _stopped(found: Diagnosis, folder: Path, made: Plan, path: Path) -> Outcome:
    """Nothing to run: what comes first is for a person. Said in the ledger too."""
    with _alone(folder):
        ledger = opened(folder, _home(path))
        _tell_plan(ledger, made)
        attempts = []
        for treatment in made.treatments:
            event = "skipped" if treatment.how == "inspect" else "needs-person"
            ledger.once(event, treatment=treatment.name, why=treatment.action.why)
            outcome = "inspect" if treatment.how == "inspect" else "person"
            attempts.append(Attempt(treatment, outcome))
            if outcome == "person":
                break
        ledger.once("end", status="person", tried=[])
    return Outcome("person", found, folder, made, tuple(attempts))


def _figures(verdict: Smoke) -> dict[str, Any]:
    seen = verdict.mover
    return {
        "verdict": verdict.verdict,
        "reason": verdict.reason,
        "steps": [verdict.first, verdict.last],
        "mover": seen.metric if seen else None,
        "control": _short(seen.control) if seen else None,
        "new": _short(seen.new) if seen else None,
        "z": _short(seen.z) if seen else None,
        "broke": [e.metric for e in verdict.broke],
        "settings": None
        if verdict.changed is None
        else [[c.name, c.a, c.b] for c in verdict.changed],
    }


def _short(value: float) -> float | None:
    import math

    return float(f"{value:.4g}") if math.isfinite(value) else None


class _alone:
    """One rescue at a time in a folder; the lock is the system's and dies with the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.handle: int | None = None

    def __enter__(self) -> None:
        try:
            import fcntl
        except (
            ImportError
        ):  # no such lock on this system: two rescues at once are then the user's to avoid
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.handle = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.handle or 0)
            self.handle = None
            raise BadUsage(
                "another rescue is going on here",
                str(self.folder),
                "wait for it, or name another with -o",
            ) from None
        except OSError as trouble:
            raise BadUsage(
                f"cannot be written ({trouble.strerror})",
                str(self.folder),
                "name another folder with -o",
            ) from None

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            os.close(self.handle)
