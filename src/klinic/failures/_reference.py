"""KL that falls to nothing from one row to the next while the policy goes on: the reference was taken anew."""

from __future__ import annotations

import itertools

import numpy as np

from klinic.curves.jumps import change_at
from klinic.curves.shape import Shape
from klinic.curves.smooth import MAD_TO_SD
from klinic.facts import Facts
from klinic.failures import Evidence, seen
from klinic.median import median

REST = 0.25  # of the level before may be left (failure_modes.json)
AT_ONCE = 0.10  # of the level before, in the first or second row: a policy against itself is 0
FROM = 0.003  # nats/token: a fall from less is a fall from nothing
ROWS = 4  # before and after
LONG = 12  # rows before, in none of which it was as low
SURE = 6.0  # noise units of the logarithm: a KL over few tokens falls to a quarter by chance
SAME_Z = 4.0  # noise units by which another curve may move at the same step (below what counts as a jump, 6)
SAME_SHARE = 0.10  # and the part of its own level that such a move may at most be, where the curve has next to no noise
POLICY = ("entropy", "len", "acc", "reward")


def drops(kl: Shape, rest: float = REST, at_once: float = AT_ONCE) -> list[int]:
    """Steps from which KL lies at or below ``rest`` of what it was in the four rows before."""
    found: list[int] = []
    logs = kl.scaled(kl.values)
    sigma = MAD_TO_SD * float(median(np.abs(np.diff(logs)))) if kl.n > 1 else 0.0
    for i in range(ROWS, kl.n - 1):
        before = kl.values[i - ROWS : i]
        after = kl.values[i : i + ROWS]
        level = float(before.min())
        if level < FROM or float(after[:2].min()) > at_once * level:
            continue
        if float(kl.values[max(0, i - LONG) : i].min()) <= at_once * level and i > LONG:
            continue  # it touches 0 now and then anyway
        if median(logs[i - ROWS : i]) - median(logs[i : i + ROWS]) < SURE * sigma:
            continue
        if float(median(after)) <= rest * level and kl.values[i] <= rest * level:
            found.append(int(kl.steps[i]))
    return [step for step, last in zip(found, [-99, *found], strict=False) if step - last > ROWS]


def policy_stays(facts: Facts, step: int) -> tuple[list[Evidence], list[Evidence]]:
    """Curves of the policy itself that go on across the step, and those that jump there."""
    same: list[Evidence] = []
    moved: list[Evidence] = []
    for role in POLICY:
        shape = facts.shape(role)
        if shape is None or shape.n < facts.n // 2:
            continue
        change, z = change_at(shape, step)
        level = max(
            abs(float(median(shape.until(step)[-8:]))) if len(shape.until(step)) else 0, 1e-9
        )
        jumps = z >= SAME_Z and abs(change) >= SAME_SHARE * level
        (moved if jumps else same).append(
            seen(
                facts,
                role,
                "against" if jumps else "for",
                "policy-jumps" if jumps else "policy-goes-on",
            )
        )
    return same, moved


def fallen(facts: Facts, kl: Shape, step: int) -> Evidence:
    """The drop itself: the levels on both sides of it."""
    before = float(median(kl.until(step)[-ROWS:]))
    after = float(median(kl.since(step)[:ROWS]))
    return Evidence("kl", "for", "kl-to-zero", "plunges", before, after, step, {"step": step})


def regular(found: list[int]) -> int | None:
    """The period of at least three drops at equal distances, None where there is none."""
    if len(found) < 3:
        return None
    gaps = [b - a for a, b in itertools.pairwise(found)]
    return gaps[0] if max(gaps) - min(gaps) <= max(1, 0.05 * max(gaps)) else None


def planned(facts: Facts) -> bool:
    """Whether the configuration says that the reference follows the policy."""
    value = facts.setting("ref_sync")
    if isinstance(value, str):
        return value.strip().lower() not in ("", "false", "none", "no", "0")
    return bool(value)
