"""Where no flag helps: say what a person must do, and judge the run that person made."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from klinic.compare.smoke import smoke
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage
from klinic.rescue.conclude import concluded, figures
from klinic.rescue.ledger import opened
from klinic.rescue.lock import alone
from klinic.rescue.outcome import Attempt, Outcome, Wish
from klinic.rescue.outset import diagnosed, home_of, tell_plan
from klinic.rescue.plan import Plan, plan

ENOUGH = 40  # points from which a diagnosis of the run that went on says something (DESIGN: "40 and more")


def stopped(found: Diagnosis, folder: Path, made: Plan, path: Path) -> Outcome:
    """Nothing to run: what comes first is for a person. Said in the ledger too."""
    with alone(folder):
        ledger = opened(folder, home_of(path))
        tell_plan(ledger, made)
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
    found, folder = diagnosed(path, out, options)
    if found.main is None:
        return Outcome("healthy", found, None)
    made = plan(found, steps=wish.steps, can_fix=True, checkpoint=wish.checkpoint)
    run = read(new, **options)
    with alone(folder):
        ledger = opened(folder, home_of(path))
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
            "judged", treatment="continue", folder=str(Path(new).resolve()), **figures(verdict)
        )
        after = judge(run) if run.logged >= ENOUGH else None
        attempt = concluded(ledger, treatment, verdict, after, Path(new))
        status = "rescued" if attempt.outcome == "rescued" else "not-rescued"
        ledger.once("end", status=status, tried=[f"{treatment.text}: {attempt.outcome}"])
    return Outcome(status, found, folder, made, (attempt,))
