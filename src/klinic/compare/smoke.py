"""A short run with one change, against the same steps without it: better, worse, or inconclusive.

Never an absolute test: of five true fixes of an entropy collapse four fail "entropy does not fall" within 20 steps, and
all five are told apart from the control (our tiny-trainer runs). The control is the old run's own steps, or the
unchanged configuration run again, and with several resamples the noise comes from their spread too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from klinic.compare.bearing import Mover, asked, movers, role_for
from klinic.compare.choice import SURE_Z, SURE_Z_ALONE, clearest
from klinic.compare.effect import Effect, effect
from klinic.compare.harm import REDEFINED, REDEFINED_BY, broke, nonfinite
from klinic.compare.pairs import pairs
from klinic.compare.settings import Changed, differences
from klinic.compare.two_runs import same_until
from klinic.curves.shape import FLAT_LEVEL, FLAT_LOG, FLAT_SHARE
from klinic.diagnosis import Diagnosis, Note
from klinic.errors import BadUsage
from klinic.failures import cards
from klinic.run import Run

STEPS = 20  # seeds: "run 20 smoke steps, then lengthen"
SHRUNK = 0.5  # of the control's bad movement that may be left (science.md: "changed sign or shrunk by half")
AS_BEFORE = 0.75  # of the control's trend: a curve that jumped and then goes on like this was shifted, not cured
AT_ONCE = 0.5  # of the whole difference that is there from the first steps: a shift
HISTORY = 5  # equal steps that are the old run's history in the new log, not luck
PRINTED = 2e-3  # of a value: what a log that prints four digits loses
REWARD_CODE = re.compile(r"reward|verif|extract|judge|format|_weight$|penalt", re.IGNORECASE)
BY_STEP = ("nan", "out-of-memory")  # no curve turns here: a run gets past the step or it does not


@dataclass(frozen=True, slots=True)
class Smoke:
    """The verdict: better, worse or inconclusive, with a lang key for the reason.

    changed: settings that differ, None where a configuration is not stated. mover: the judged curve's effect;
    old_change: the same curve's change in the old run itself, None where it has no such steps.
    lost: metrics that became NaN, and where. mode: "old" (the old run is the control) or "control".
    """

    verdict: str
    reason: str
    failure: str | None
    old: str
    first: int
    last: int
    asked: int
    changed: tuple[Changed, ...] | None
    toward: Mover | None
    mover: Effect | None
    broke: tuple[Effect, ...] = ()
    lost: Mapping[str, int] = field(default_factory=dict)
    resamples: tuple[int, int] = (1, 1)
    old_change: float | None = None
    mode: str = "old"
    notes: tuple[Note, ...] = ()

    @property
    def one_knob(self) -> bool | None:
        """Whether exactly one setting differs; None where that is not known."""
        return None if self.changed is None else len(self.changed) == 1


def smoke(
    old: str | Path | Run | Diagnosis,
    news: Sequence[str | Path | Run],
    controls: Sequence[str | Path | Run] = (),
    *,
    steps: int = STEPS,
    start: int | None = None,
    metric: str | None = None,
    better: str | None = None,
    kind: str | None = None,
    include_old: bool = False,
    toward: Mover | None = None,
    **options: Any,
) -> Smoke:
    """Judge a change. news, controls: resamples of either arm; without controls the old run's own steps are it.

    start: first step after the checkpoint, else read off the new run. kind: the treatment's kind ("fix-reward",
    "change-data"), since some curves then change their meaning. include_old: count the old run as one more
    resample of the control. toward: the curve to judge by, where it was chosen before. Raises UnreadableInput, and BadUsage where there is nothing to judge by.
    """
    from klinic.diagnose import judge
    from klinic.read import read

    def opened(run: str | Path | Run) -> Run:
        return run if isinstance(run, Run) else read(run, **options)

    before = old if isinstance(old, Diagnosis) else judge(opened(old))
    arms = [opened(run) for run in news]
    unchanged = [opened(run) for run in controls]
    first, last = _window(before.run, arms[0], steps, start)
    arms, unchanged = _distinct(arms, first, last), _distinct(unchanged, first, last)
    mode = "control" if unchanged else "old"
    if not unchanged or (include_old and before.run.last >= last):
        # An exact replay of the old run is the old run: counted twice it would look like agreement.
        if not any(_equal(control, before.run, first, last, PRINTED) for control in unchanged):
            unchanged = [*unchanged, before.run]
    toward = asked(before, metric, better) if metric is not None else toward
    if toward is None:
        candidates = movers(before)
        if not candidates:
            raise BadUsage(
                f"no failure was found in {before.run.name}, so nothing says what should get better",
                "klinic smoke",
                "name the curve: --metric entropy --better higher",
            )
        shown = [before.run] if before.run.last >= last else unchanged
        chosen = clearest(candidates, before.run, shown, first, last)
        toward = chosen or candidates[0]
    kind = kind or (before.first_action.kind if before.first_action else None)
    if before.main is not None and cards()[before.main.failure].family == "reward":
        kind = "fix-reward"  # whatever cures it, a verifier too, changes what the reward means
    result = Smoke(
        "inconclusive",
        "unsure",
        before.main.failure if before.main else None,
        before.run.name,
        first,
        last,
        steps,
        differences(unchanged[0], arms[0]),
        toward,
        effect(toward.metric, before.run, unchanged, arms, first, last),
        resamples=(len(unchanged), len(arms)),
        mode=mode,
    )
    own = effect(toward.metric, before.run, [before.run], arms[:1], first, last)
    # A knob that was turned redefines nothing, whatever the diagnosis advised.
    turned = any(c.knob is not None for c in result.changed or ())
    if any(c.knob is None and REWARD_CODE.search(c.name) for c in result.changed or ()):
        kind, turned = "fix-reward", False
    leave_out = {toward.metric, *(() if turned else REDEFINED.get(kind or "", ()))}
    for change in result.changed or ():
        leave_out |= set(REDEFINED_BY.get(change.knob or "", ()))
    result = replace(
        result,
        old_change=own.control_change if own is not None else None,
        broke=broke(before.run, unchanged, arms, first, last, leave_out),
        lost={
            name: step
            for name, step in nonfinite(arms, first, last).items()
            if name not in nonfinite(unchanged, first, last)
        },
    )
    if _bitwise(unchanged, arms, first, last):
        return _noted(replace(result, reason="not-arrived"))
    if result.failure in BY_STEP and metric is None:
        return _noted(_past(result, before.run, unchanged, arms))
    return _noted(_judged(result))


def _window(old: Run, new: Run, steps: int, start: int | None) -> tuple[int, int]:
    """First and last step that are compared: those after the point at which the new run left the old one."""
    if start is None and new.first > old.first + HISTORY:
        start = new.first  # the log begins at the checkpoint
    elif start is None:
        found, _ = pairs(old, new)
        shared = same_until(found, PRINTED)
        count = (
            0 if shared is None else len({int(s) for p in found for s in p.steps if s <= shared})
        )
        if shared is not None and count >= HISTORY and shared < new.last:
            start = min(int(s) for p in found for s in p.steps if s > shared)
        elif shared is not None and shared >= new.last:
            start = max(new.first, new.last - steps + 1)
        else:
            start = new.first
    last = min(start + steps - 1, new.last)
    if start > old.last or last < old.first:
        raise BadUsage(
            f"no common steps: {old.name} has {old.first} to {old.last}, {new.name} {new.first} to {new.last}",
            "klinic smoke",
            "the new run must go on from a checkpoint of the old one; else give --control",
        )
    return start, last


def _distinct(runs: Sequence[Run], first: int, last: int) -> list[Run]:
    """Runs of one arm without exact replays: a trainer that ignores its seed makes no second resample."""
    found: list[Run] = []
    for run in runs:
        if not any(_equal(run, other, first, last) for other in found):
            found.append(run)
    return found


def _bitwise(controls: Sequence[Run], news: Sequence[Run], first: int, last: int) -> bool:
    """Whether every changed run has the very same curves as some control: the change never arrived."""
    return all(any(_equal(control, new, first, last) for control in controls) for new in news)


def _equal(a: Run, b: Run, first: int, last: int, tolerance: float = 0.0) -> bool:
    within = [(p, (p.steps >= first) & (p.steps <= last)) for p in pairs(a, b)[0]]
    within = [(p, inside) for p, inside in within if inside.any()]
    return bool(within) and all(
        np.allclose(p.a[i], p.b[i], rtol=tolerance, atol=0.0) for p, i in within
    )


def _judged(result: Smoke) -> Smoke:
    seen, toward = result.mover, result.toward
    if result.lost:
        return replace(result, verdict="worse", reason="lost")
    if seen is None or toward is None:
        return replace(result, reason="worse-elsewhere" if result.broke else "not-logged",
                       verdict="worse" if result.broke else "inconclusive")  # fmt: skip
    gain = -toward.worse * seen.z
    sure = SURE_Z if min(result.resamples) > 1 else SURE_Z_ALONE
    if gain <= -sure and abs(seen.difference) >= _effect(seen):
        return replace(result, verdict="worse", reason="mover-worse")
    if result.broke:
        return replace(result, verdict="worse", reason="worse-elsewhere")
    if gain < sure:
        return replace(result, reason="unsure")
    if toward.because == "moved":
        verdict, reason = _turned(seen, toward.worse)
        return replace(result, verdict=verdict, reason=reason)
    if abs(seen.difference) < _effect(seen) and toward.because == "flat":
        return replace(result, reason="too-little")
    return replace(result, verdict="better", reason="mover-better")


def _turned(seen: Effect, worse: int) -> tuple[str, str]:
    """Whether a curve that moved in the bad direction does so less: verdict and reason."""
    no = "inconclusive"
    bad, left = worse * seen.control_change, worse * seen.new_change
    if bad < SURE_Z * seen.error or bad < _effect(seen):
        # The control does not move here; it may have failed already when the window began.
        bad, left = worse * seen.control_since, worse * seen.new_since
        if bad < SURE_Z * seen.error or bad < _effect(seen):
            return no, "control-well"
    if left > SHRUNK * bad:
        return no, "too-little"
    at_once = worse * (
        (seen.control_change - seen.control_trend) - (seen.new_change - seen.new_trend)
    )
    trend = worse * seen.control_trend
    if (
        trend > SURE_Z * seen.error
        and at_once >= AT_ONCE * abs(seen.difference)
        and worse * seen.new_trend >= AS_BEFORE * trend
    ):
        return no, "shifted"
    return "better", "mover-better"


def _effect(seen: Effect) -> float:
    scale = role_for(seen.metric).scale
    if scale == "log":
        return FLAT_LOG / 2
    return FLAT_SHARE if scale == "share" else FLAT_LEVEL / 2 * seen.sigma


def _past(result: Smoke, old: Run, controls: Sequence[Run], news: Sequence[Run]) -> Smoke:
    """Better if the changed runs get past the step at which the control broke off or went non-finite."""
    stopped = any(run.last < result.last for run in controls) or bool(
        nonfinite(controls, result.first, result.last)
    )
    if result.lost or any(run.last < result.last for run in news):
        return replace(
            result, verdict="worse" if not stopped else "inconclusive", reason="not-past"
        )
    if nonfinite(news, result.first, result.last):
        return replace(result, reason="not-past")
    if not stopped:
        return replace(result, reason="control-well")
    return replace(result, verdict="better", reason="past")


def _noted(result: Smoke) -> Smoke:
    notes = []
    if result.changed is None:
        notes.append(Note(None, "smoke.note.settings-unknown"))
    elif len(result.changed) > 1:
        notes.append(Note(None, "smoke.note.several", {"n": len(result.changed)}))
    elif not result.changed:
        notes.append(Note(None, "smoke.note.none"))
    if result.last - result.first + 1 < result.asked:
        notes.append(
            Note(None, "smoke.note.short",
                 {"steps": result.last - result.first + 1, "asked": result.asked})
        )  # fmt: skip
    if result.resamples == (1, 1):
        notes.append(Note(None, "smoke.note.one"))
    return replace(result, notes=tuple(notes))
