"""What a rescue will do: which checkpoint to go back to, how many steps to compare, which changes in which order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from klinic.advise.checkpoints import roll_back_to
from klinic.compare.bearing import Mover, movers, named
from klinic.compare.choice import clearest
from klinic.compare.effect import ENOUGH, gone, points
from klinic.diagnosis import Action, Diagnosis
from klinic.run import Checkpoint

# At most so many times the steps asked for: a failure that needs longer to show is no matter of a smoke test.
MOST = 8
# Of a curve's whole bad movement, the part it may have gone at the checkpoint that is gone back to.
SPOILT = 0.25
# An action that is no knob, as the lab and --fix-command name it.
FIXES = {"fix-reward": "reward", "fix-code": "code", "change-data": "data"}


@dataclass(frozen=True, slots=True)
class Treatment:
    """One change. how: "set" (a knob), "fix" (a command of its own), "person" (nobody but a person can), "inspect".

    name: folder and ledger name; text: as a person reads it.
    """

    name: str
    how: str
    action: Action
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rescue of one run.

    checkpoint: None to start from scratch. before_onset: whether it is one before the onset. start: its step.
    steps: compared steps; asked: those asked for. shows: whether the old run fails within them.
    """

    diagnosis: Diagnosis
    toward: Mover | None
    checkpoint: Checkpoint | None
    before_onset: bool
    start: int
    steps: int
    asked: int
    shows: bool
    treatments: tuple[Treatment, ...]


def plan(
    found: Diagnosis,
    *,
    steps: int,
    can_fix: bool,
    checkpoint: str | None = None,
    from_start: bool = False,
) -> Plan:
    """The plan for a run with a failure. checkpoint: a path or name that overrides the advice.

    Raises BadUsage for a checkpoint that is not there.
    """
    main = found.main
    assert main is not None, "a healthy run needs no plan"
    point, before = None, True
    if not from_start:
        point, before = _point(found, checkpoint)
    start = point.step if point is not None else found.run.first
    toward, count, shows = _steps(found, start, steps)
    return Plan(
        found, toward, point, before, start, count, steps, shows, tuple(_treatments(found, can_fix))
    )


def _point(found: Diagnosis, wanted: str | None) -> tuple[Checkpoint | None, bool]:
    from klinic.errors import BadUsage, did_you_mean

    run, onset = found.run, found.main.onset if found.main else None
    if wanted is not None:
        for point in run.checkpoints:
            if wanted == point.name or Path(wanted).resolve() == Path(point.path).resolve():
                return point, onset is None or point.step <= onset.low
        if Path(wanted).exists():
            digits = re.findall(r"\d+", Path(wanted).name)
            step = int(digits[-1]) if digits else run.first
            place = Path(wanted).resolve()
            return Checkpoint(step, place.name, str(place)), onset is None or step <= onset.low
        names = [point.name for point in run.checkpoints]
        raise BadUsage(
            f"no checkpoint {wanted!r}",
            "--checkpoint",
            did_you_mean(wanted, names) or f"there are: {', '.join(names) or 'none'}",
        )
    advised = found.roll_back_to or roll_back_to(run, onset.low if onset is not None else None)
    if advised is not None:
        return _unspoilt(found, advised), True
    whole = [p for p in run.checkpoints if not p.missing]
    # None lies before the onset: the oldest is the least spoilt.
    return (whole[0], False) if whole else (None, False)


def _steps(found: Diagnosis, start: int, asked: int) -> tuple[Mover | None, int, bool]:
    """The curve to judge by, and how many steps the old run needs after the checkpoint to show its failure on it."""
    candidates, run = movers(found), found.run
    onset = found.main.onset if found.main else None
    after = max(asked, (onset.step - start if onset is not None else 0) + asked)
    first = next(iter(candidates), None)
    # An evaluation every ten steps says something only after six of them.
    after = min(max(after, points(first.metric, run, ENOUGH) if first else 0), MOST * asked)
    if not any(m.because == "moved" for m in candidates):
        return first, after, True
    for times in range(1, MOST + 1):
        last = min(start + times * asked - 1, run.last)
        chosen = clearest(candidates, run, [run], start, last)
        if chosen is not None:
            return chosen, times * asked, True
        if last >= run.last:
            break
    return candidates[0], after, False


def _unspoilt(found: Diagnosis, advised: Checkpoint) -> Checkpoint:
    """The newest checkpoint up to the advised one at which the failure's own curve has hardly begun to go.

    A slow failure is dated late; what is restarted from half-way keeps the half that was lost.
    """
    moved = [m for m in movers(found) if m.because == "moved"]
    told = [named(e).metric for e in found.main.evidence] if found.main else []
    if not moved:
        return advised
    own = min(moved, key=lambda m: told.index(m.metric))
    run = found.run
    points = [p for p in run.checkpoints if p.step <= advised.step and not p.missing]
    for point in reversed(points):
        if gone(own.metric, own.worse, run, point.step) <= SPOILT:
            return point
    return points[0] if points else advised


def _treatments(found: Diagnosis, can_fix: bool) -> Iterator[Treatment]:
    number, seen = 0, set()
    for action in [a for a in (found.first_action, *found.then) if a is not None]:
        fix = FIXES.get(action.kind, "")
        if action.kind == "set":
            ready = action.new is not None and action.flag is not None
            how = "set" if ready else "person"
            text = f"{action.flag}={value_text(action.new)}" if ready else f"{action.flag}"
        elif fix:
            how, text = ("fix" if can_fix else "person"), action.kind
            if (how, fix) in seen:
                continue  # one repair covers both
            seen.add((how, fix))
        else:
            how, text = "inspect", action.kind
        number += how in ("set", "fix")
        name = f"{number}-{action.knob}" if how in ("set", "fix") else action.knob
        if how == "set":
            name += "-" + re.sub(r"[^\w.+-]", "_", value_text(action.new))
        yield Treatment(name, how, action, text, fix)


def value_text(value: object) -> str:
    """A value as a command line takes it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
