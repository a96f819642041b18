"""The rescue itself: one change after the other, each beside the control, until one of them cures the run.

Everything that takes long is a folder that is either finished or not there; everything else is worked out again from the
folders. So a rescue that was interrupted at any moment goes on where it stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klinic.compare.settings import home
from klinic.compare.smoke import smoke
from klinic.errors import BadUsage
from klinic.rescue.arms import Arms, Told, arrival
from klinic.rescue.conclude import concluded, figures
from klinic.rescue.ledger import opened
from klinic.rescue.lock import alone
from klinic.rescue.outcome import Attempt, Outcome, Wish
from klinic.rescue.outset import commands_for, diagnosed, home_of, tell_plan
from klinic.rescue.person import stopped
from klinic.rescue.plan import Plan, Treatment, plan
from klinic.rescue.process import clear
from klinic.run import Run

RESAMPLES = {"lab": 2}  # where a run costs seconds; elsewhere 1


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
    found, folder = diagnosed(path, out, options)
    if found.main is None or (found.status != "failing" and not wish.anyway):
        return Outcome("healthy", found, None)
    commands = commands_for(found, wish)
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
            return stopped(found, folder, made, Path(path))
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
    with alone(folder):
        ledger = opened(folder, home_of(path))
        for half in clear(folder):
            ledger.write(
                "thrown-away", folder=half, why="half-run when the last rescue was interrupted"
            )
        tell_plan(ledger, made)
        arms = Arms(folder, made, commands, ledger, wish.timeout, options, tell)
        attempts = _tried(arms, wish)
        status = _status(attempts)
        ledger.once(
            "end", status=status, tried=[f"{a.treatment.text}: {a.outcome}" for a in attempts]
        )
    return Outcome(status, found, folder, made, tuple(attempts))


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
    for place, attempt in enumerate(attempts):
        attempts[place] = _last_resort(arms, attempt, wish)
        if attempts[place].outcome == "rescued":
            break
    return attempts


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
    return concluded(arms.ledger, attempt.treatment, verdict, judge(run), home(run))


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
    arms.ledger.once("judged", treatment=treatment.name, change=treatment.text, **figures(verdict))
    if verdict.verdict != "better":
        outcome = "not-arrived" if verdict.reason == "not-arrived" else verdict.verdict
        return Attempt(treatment, outcome, verdict)
    arms.tell("judged", verdict=verdict)
    run = arms.onward(treatment, wish.on)
    if run is None:
        return Attempt(treatment, "failed", verdict)
    from klinic.diagnose import judge

    return concluded(arms.ledger, treatment, verdict, judge(run), home(run))


def _begin(made: Plan, news: list[Run]) -> int:
    """The first step after the checkpoint: a trainer that keeps the old history in its log began long before."""
    first = max(run.first for run in news)
    return first if made.checkpoint is None or first >= made.start else made.start + 1


def _status(attempts: list[Attempt]) -> str:
    outcomes = [a.outcome for a in attempts]
    if "rescued" in outcomes:
        return "rescued"
    return "person" if "person" in outcomes else "not-rescued"
