"""The reward follows the length of the answer, not whether it is right."""

from __future__ import annotations

import numpy as np

from klinic.curves.shape import Shape
from klinic.curves.together import change_between
from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, failure, present, ruled_out, seen

PAID = 0.30  # correlation of reward and length, mean over a fifth of the run (failure_modes.json; healthy lab runs reach 0.1)
USED = 0.5  # part of it that right answers must show against length for the length to be used
GROWN = 1.25  # of the own early length, as in healthy-length-growth
CUT = 0.15  # truncated share from which length-explosion judges (seed 000)
FIFTHS = 5  # parts of a run, each long enough to average a batch's correlation (our choice)
FOLLOWS_Z = 3.0  # noise units by which acc must rise with the length (as in length-explosion)


@failure(
    family="reward",
    stage="reward",
    explains="length-explosion entropy-collapse kl-runaway plateau eval-regression reward-hacking",
    treatments=(
        Treatment("fix-reward", "length_control"),
        Treatment("fix-reward", "length_penalty", restart="may"),
        Treatment("fix-reward", "reward_model"),
    ),
)
def length_bias(facts: Facts) -> Verdict:
    """Need: length grows, reward correlates with length above 0.3. Veto: right answers follow length as well, or answers are cut."""
    relation, length = facts.need("relation_reward_len", "len")
    trunc, right, acc = facts.level("trunc"), facts.shape("relation_acc_len"), facts.shape("acc")
    paid, i = _highest(relation)
    if facts.few or paid < PAID:
        return ruled_out(seen(facts, "relation_reward_len", "against", "unpaid"))
    if not length.rose or length.after < GROWN * length.before:
        return ruled_out(seen(facts, "len", "against", "not-growing"))
    if trunc is not None and trunc.after >= CUT and trunc.after - trunc.before >= CUT / 2:
        return ruled_out(seen(facts, "trunc", "against", "cut"))
    used = _fifths(right)[i] if right is not None else None
    if used is not None and used >= USED * paid:
        return ruled_out(seen(facts, "relation_acc_len", "against", "used", right, most=used))
    begin = length.onset.step if length.onset is not None else facts.run.first
    follows = acc is not None and change_between(acc, begin, facts.run.last)[1] >= FOLLOWS_Z
    if follows and used is None:
        return ruled_out(seen(facts, "acc", "against", "acc-follows"))
    lost = acc is not None and acc.fell
    return present(
        "act" if lost or not follows else "caution",
        length.onset,
        seen(facts, "len", "for", "longer"),
        seen(facts, "relation_reward_len", "for", "paid", relation, most=paid),
        seen(facts, "relation_acc_len", "for", "unused", right, most=used)
        if used is not None
        else None,
        seen(facts, "acc", "for", "acc-stays") if acc is not None and not follows else None,
    )


def _fifths(shape: Shape) -> list[float]:
    """Means over the fifths of a run: a correlation over one batch is far noisier than that."""
    return [float(part.mean()) for part in np.array_split(shape.values, min(FIFTHS, shape.n))]


def _highest(shape: Shape) -> tuple[float, int]:
    found = _fifths(shape)
    i = int(np.argmax(found))
    return found[i], i
