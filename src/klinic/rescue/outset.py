"""How a rescue begins: the diagnosis, the folder, the commands, and the first lines of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage
from klinic.rescue.arms import Commands
from klinic.rescue.ledger import Ledger
from klinic.rescue.outcome import Wish
from klinic.rescue.plan import Plan
from klinic.rescue.template import BUILT_IN, template


def diagnosed(
    path: str | Path, out: str | Path | None, options: Mapping[str, Any]
) -> tuple[Diagnosis, Path]:
    """The diagnosis of a run, and the folder of its rescue. Raises BadUsage for a folder inside the run's."""
    from klinic.diagnose import diagnose

    if str(path) == "-":
        raise BadUsage(
            "a rescue needs the run's folder", "klinic rescue", "name the folder or its log"
        )
    found = diagnose(path, **options)
    home = home_of(path)
    folder = Path(out) if out is not None else home.with_name(home.name + "-rescue")
    folder = folder.resolve()
    if folder == home or home in folder.parents:
        raise BadUsage(
            "it lies in the run's own folder", str(folder), "name a folder outside with -o"
        )
    return found, folder


def home_of(path: str | Path) -> Path:
    """The folder of a run, named by itself or by its log."""
    place = Path(path).resolve()
    return place if place.is_dir() else place.parent


def commands_for(found: Diagnosis, wish: Wish) -> Commands | None:
    """How this run's trainer is called; None where nobody said. Raises BadUsage for a template that will not do."""
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


def tell_plan(ledger: Ledger, made: Plan) -> None:
    """Write down what was found and where the rescue goes back to."""
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
