"""Which way is better: read off the evidence of the old run's failure, so that no failure has to say it twice.

The curve that moved first moved in the bad direction; less of that is better. Where nothing moved (the fault was there
from the first step) a value stuck at its floor should leave it, and a flat curve of a known bad side should get better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage, did_you_mean
from klinic.failures import Evidence
from klinic.vitals import ROLES, Role

UP, DOWN, EITHER = 1, -1, 0

# The side on which a curve is bad whatever the failure (seed 003: the reading table of the eight curves). Entropy and
# length can be bad on both. Roles that should be 1 are judged by their distance from it, where more is bad.
WORSE: dict[str, int] = {
    "reward": DOWN,
    "acc": DOWN,
    "entropy": EITHER,
    "kl": UP,
    "adv_std": DOWN,
    "clip_frac": UP,
    "ratio_mean": UP,
    "len": EITHER,
    "zero_std": UP,
    "all_wrong": UP,
    "trunc": UP,
    "grad_norm": UP,
    "ratio_geo": UP,
    "ratio_outside": UP,
    "mismatch": UP,
    "kl_old": UP,
    "value_loss": UP,
    "explained_variance": DOWN,
    "verifier_error": UP,
    "uniq": DOWN,
    "train_acc": DOWN,
    "heldout": DOWN,
    "format_ok": DOWN,
    "format_error": UP,
    "repetition": UP,
    "language_ok": DOWN,
    "language_mixed": UP,
    "refusal": UP,
    "factuality": DOWN,
    "similarity": UP,
    "relation_reward_len": UP,
    "reward_low": DOWN,
    "reward_median": DOWN,
}
STILL = ("flat", "noisy")


@dataclass(frozen=True, slots=True)
class Mover:
    """The curve a change is judged by. worse: +1 if more of it is bad, -1 if less.

    because: "moved" (it moved that way), "floor" (it is stuck at its floor), "flat" (it never was good).
    """

    metric: str
    worse: int
    because: str


def role_for(metric: str) -> Role:
    """The role behind a name in the evidence; an evaluation by its canonical name is a share."""
    return ROLES.get(metric, ROLES["acc"])


def about_one(role: Role) -> bool:
    """Whether a role should be 1, so that only its distance from 1 can be better or worse."""
    return role.steady and role.unit == "1"


def movers(old: Diagnosis) -> list[Mover]:
    """Curves that a change of the old run can be judged by, the first mover first; none where it has no failure."""
    if old.main is None:
        return []
    told = [named(e) for e in old.main.evidence if e.says == "for"]
    # Evidence may be of a part that is no curve of the log ("acc (other)"): nothing can be compared there.
    told = [e for e in told if e.metric in ROLES or e.metric in old.run.curves]
    # A share over few groups jumps too much to be judged by where a finer curve moved as well.
    told.sort(key=lambda e: (role_for(e.metric).coarse, _when(e)))
    moved = [m for e in told if (m := _by_movement(e)) is not None]
    stuck = [m for e in told if (m := _by_floor(e)) is not None]
    flat = [m for e in told if (m := _by_side(e)) is not None]
    return [*moved, *stuck, *flat] or [m for e in told if (m := _by_role(e)) is not None]


def named(e: Evidence) -> Evidence:
    """Evidence of one evaluation under that curve's own name, so that the training acc does not stand in for it."""
    task = e.values.get("task")
    return replace(e, metric=f"eval/{task}/acc") if e.metric == "acc" and task else e


def _when(e: Evidence) -> float:
    return float("inf") if e.onset is None else float(e.onset)


def _side(metric: str) -> int:
    return WORSE.get(metric, DOWN if metric not in ROLES else EITHER)


def _by_movement(e: Evidence) -> Mover | None:
    if e.word in STILL or e.before is None or e.after is None or e.before == e.after:
        return None
    if about_one(role_for(e.metric)):
        return Mover(e.metric, UP, "moved")
    if e.metric == "kl" and e.after < 0:  # a divergence below 0 is the failure
        return Mover(e.metric, DOWN, "moved")
    went = UP if e.after > e.before else DOWN
    # A reward that rises or spreads while acc falls is evidence, but less of it proves nothing.
    if e.metric.startswith("reward") and _side(e.metric) == EITHER:
        return None
    return Mover(e.metric, went, "moved") if _side(e.metric) in (EITHER, went) else None


def _by_floor(e: Evidence) -> Mover | None:
    role = role_for(e.metric)
    if e.after is None or e.metric in ("clip_frac", "trunc", "mismatch", "verifier_error"):
        return None  # there 0 is healthy
    level = abs(e.after - 1) if about_one(role) else e.after
    if role.scale == "log" or about_one(role):
        return Mover(e.metric, DOWN, "floor") if 0 <= level <= max(role.floor, 1e-9) else None
    return None


def _by_side(e: Evidence) -> Mover | None:
    if e.after is None or e.word not in STILL:
        return None
    if e.metric == "kl" and e.after < 0:  # a divergence below 0 is the failure
        return Mover(e.metric, DOWN, "flat")
    side = _side(e.metric)
    return Mover(e.metric, side, "flat") if side != EITHER else None


def _by_role(e: Evidence) -> Mover | None:
    """For a curve that is too high from the first step on and moves a little the other way meanwhile."""
    side = _side(e.metric)
    return Mover(e.metric, side, "flat") if side == UP else None


def asked(old: Diagnosis, metric: str, better: str | None) -> Mover:
    """The bad side of a curve the user names. better: "higher" or "lower", where the evidence does not say.

    Raises BadUsage for an unknown metric, and for one that can be bad on both sides.
    """
    names = [e.metric for f in old.findings for e in f.evidence]
    if metric not in ROLES and metric not in old.run.curves and metric not in names:
        raise BadUsage(
            f"unknown metric {metric!r}",
            "--metric",
            did_you_mean(metric, ROLES) or f"known: {', '.join(ROLES)}",
        )
    if better is not None:
        return Mover(metric, DOWN if better == "higher" else UP, "moved")
    evidence = [e for f in old.findings for e in f.evidence if e.metric == metric]
    for e in [e for e in evidence if e.says == "for"] + evidence:
        found = _by_movement(e) or _by_floor(e)
        if found is not None:
            return found
    if _side(metric) != EITHER:
        return Mover(metric, _side(metric), "flat")
    raise BadUsage(
        f"{metric} can be bad on both sides", "--metric", "add --better higher or --better lower"
    )
