"""Did anything else break: every other curve that got clearly worse than in the control."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from klinic.compare.bearing import EITHER, WORSE
from klinic.compare.effect import Effect, effect
from klinic.curves.shape import FLAT_LEVEL
from klinic.run import Run
from klinic.vitals import ROLES

# Over some 20 curves a larger z than the mover's is needed; sizes are those at which the seeds act: a factor
# of two, a tenth of a share.
BROKE_Z, BROKE_Z_ALONE = 4.0, 6.0  # with several runs in either arm, with one
FACTOR = float(np.log(2.0))
SHARE = 0.10
# Below these a curve is healthy whatever its factor (seed 003: kl to 0.05, clip fraction to 4 %).
HARMLESS = {"kl": 0.05, "mismatch": 0.01, "clip_frac": 0.04, "trunc": 0.05}

# These should get better all the time: there standing still beside a control that learns is a loss.
PROGRESS = ("reward", "acc")

# Groups differ less where more of them are all right: with as many right answers as the control that is learning.
SPREAD = ("adv_std", "zero_std")

# What a treatment of this kind changes by definition: there old and new values do not mean the same.
REDEFINED: dict[str, tuple[str, ...]] = {
    "fix-reward": (
        *(role for role in ROLES if "reward" in role),
        "adv_std", "zero_std", "all_wrong", "value_loss",
    ),
    "change-data": (
        *(role for role in ROLES if "reward" in role),
        "acc", "adv_std", "zero_std", "all_wrong", "len", "trunc", "entropy", "uniq",
    ),
}  # fmt: skip
# The same for a knob: with one pass over a batch there is less to clip, and the mean gradient has no late updates in it.
REDEFINED_BY: dict[str, tuple[str, ...]] = {
    "updates_per_batch": ("grad_norm", "clip_frac", "ratio_outside", "kl_old"),
    "group_size": ("adv_std", "zero_std", "all_wrong"),
    "temperature": ("entropy", "uniq"),
}


def broke(
    old: Run,
    controls: Sequence[Run],
    news: Sequence[Run],
    first: int,
    last: int,
    leave_out: Collection[str],
) -> tuple[Effect, ...]:
    """Curves that are clearly worse than the control's over these steps, worst first."""
    enough = BROKE_Z if min(len(controls), len(news)) > 1 else BROKE_Z_ALONE
    found = []
    right = effect("acc", old, controls, news, first, last)
    learns = right is not None and right.difference >= 0
    for role, side in WORSE.items():
        if role in leave_out or (learns and role in SPREAD):
            continue
        seen = effect(role, old, controls, news, first, last)
        if seen is None or abs(seen.difference) < _size(seen):
            continue
        if role == "kl" and seen.control < 0:  # a divergence below 0 can only get better
            continue
        if (
            side == EITHER
        ):  # both sides can be bad: worse is what went further from where both arms began
            harm = abs(seen.new_change) - abs(seen.control_change)
        elif role not in PROGRESS and side * seen.new_change < _size(seen) / 2:
            continue  # where the control went the good way for a bad reason, staying put breaks nothing
        else:
            harm = side * seen.difference
        if harm > 0 and abs(seen.z) >= enough and seen.new > HARMLESS.get(role, -np.inf):
            found.append(seen)
    return tuple(sorted(found, key=lambda e: -abs(e.z)))


def nonfinite(runs: Sequence[Run], first: int, last: int) -> dict[str, int]:
    """Roles with a NaN or infinity in the window, and the first step of each."""
    found: dict[str, int] = {}
    for run in runs:
        for name, curve in run.curves.items():
            at = curve.nonfinite_steps
            at = at[(at >= first) & (at <= last)]
            if len(at):
                found[name] = min(found.get(name, int(at[0])), int(at[0]))
    return found


def _size(seen: Effect) -> float:
    """The difference from which a curve counts as broken."""
    scale = ROLES[seen.metric].scale
    if scale == "log":
        return FACTOR
    return SHARE if scale == "share" else FLAT_LEVEL * seen.sigma
