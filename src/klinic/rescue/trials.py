"""The rescue itself: one change after the other, each beside the control, until one of them cures the run.

Everything that takes long is a folder that is either finished or not there; everything else is worked out again from the
folders. So a rescue that was interrupted at any moment goes on where it stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klinic.errors import BadUsage
from klinic.rescue.arms import Arms, Told
from klinic.rescue.ledger import opened
from klinic.rescue.lock import alone
from klinic.rescue.outcome import Attempt, Outcome, Wish
from klinic.rescue.outset import commands_for, diagnosed, home_of, tell_plan
from klinic.rescue.person import stopped
from klinic.rescue.plan import plan
from klinic.rescue.process import clear
from klinic.rescue.rounds import attempts_of


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
        arms = Arms(folder, made, commands, ledger, wish.timeout, options, tell, wish.retry)
        attempts = attempts_of(arms, wish)
        status = _status(attempts)
        ledger.once(
            "end", status=status, tried=[f"{a.treatment.text}: {a.outcome}" for a in attempts]
        )
    return Outcome(status, found, folder, made, tuple(attempts))


def _status(attempts: list[Attempt]) -> str:
    outcomes = [a.outcome for a in attempts]
    if "rescued" in outcomes:
        return "rescued"
    return "person" if "person" in outcomes else "not-rescued"
