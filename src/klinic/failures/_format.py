"""The share of answers in the right format, however a run logs it."""

from __future__ import annotations

from klinic.curves.shape import Shape
from klinic.facts import Facts, NotLogged
from klinic.vitals import ROLES


def format_curve(facts: Facts) -> tuple[Shape, str]:
    """The share in the right format, and the role it was read from: a share, one minus the errors, or a reward part.

    A reward part counts in units of its best kept level, since what it pays is the author's choice; one that goes
    below 0 or pays by the tag instead of by the answer says nothing, and is left out. Raises NotLogged.
    """
    ok, wrong = facts.shape("format_ok"), facts.shape("format_error")
    metric = facts.metric("format_ok")
    paid = metric is not None and metric.name.startswith("reward_part/")
    if ok is not None and not paid:
        return ok, "format_ok"
    if wrong is not None:
        return Shape(ROLES["format_ok"], wrong.steps, 1 - wrong.values), "format_error"
    if ok is None or ok.values.min() < 0 or ok.values.max() > 1 + 1e-6 or ok.highest <= 0:
        raise NotLogged("format_ok")
    return Shape(ROLES["format_ok"], ok.steps, ok.values / ok.highest), "format_ok"
