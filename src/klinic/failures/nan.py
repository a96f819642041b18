"""NaN or infinity in a metric of the update."""

from __future__ import annotations

import numpy as np

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, set_knob
from klinic.vitals import ROLES, players

ROLES_WATCHED = (
    "grad_norm",
    "loss",
    "value_loss",
    "kl",
    "entropy",
    "reward",
    "ratio_mean",
    "explained_variance",
)
ROWS = 3  # before and after, from which a reward counts as dead
NEVER_COMPUTED = (
    "kl",
    "entropy",
    "ratio_mean",
)  # an all-NaN column of these is a metric that was not computed


@failure(
    family="implementation",
    stage="implementation",
    explains="no-learning gradient-lost reward-collapse entropy-collapse zero-advantage too-hard length-explosion truncation-rise "
    "length-collapse eval-regression reward-hacking kl-runaway lr-too-high entropy-explosion format-collapse repetition",
    treatments=(
        set_knob("loss_scale", to=0, only_if="fixed-scale"),
        Treatment("inspect", "first_nonfinite"),
        set_knob("lr", scale=0.5),
        set_knob("max_grad_norm", scale=0.5),
    ),
)
def nan(facts: Facts) -> Verdict:
    """Need: a non-finite value; which metric and which step came first."""
    hits: list[tuple[int, str, int, bool]] = []
    for role in ROLES_WATCHED:
        for name in players(role, facts.run.curves)[:1]:
            curve = facts.run.curves[name]
            steps = curve.nonfinite_steps
            if len(steps) and not (role in NEVER_COMPUTED and len(steps) == len(curve.values)):
                hits.append(
                    (int(steps[0]), role, len(steps), not bool(np.isfinite(curve.values[-1])))
                )
    if not hits:
        said = facts.events("not-finite")
        if said:
            at = said[0].step or facts.run.first
            return present(
                "act",
                Onset(at, at, at),
                Evidence("grad_norm", "for", "said", values={"text": said[0].lines[0][:80]}),
            )
        return ruled_out(Evidence("loss", "against", "finite"))
    hits.sort()
    step = hits[0][0]
    repeated = any(hit[2] >= 3 or hit[3] for hit in hits)
    return present(
        "stop" if any(hit[3] for hit in hits) and facts.n > 3 else "act" if repeated else "caution",
        Onset(step, step, step),
        *[
            Evidence(
                role,
                "for",
                "nonfinite",
                "flat",
                None,
                None,
                first,
                {"count": count, "first": first},
            )
            for first, role, count, _ in hits
        ],
        _dead(facts, step),
        sure=True,
    )


def _dead(facts: Facts, step: int) -> Evidence | None:
    """The reward does not move any more after the first NaN: the weights are gone, and every answer is the same."""
    reward = facts.shape("reward")
    if reward is None:
        return None
    before, after = reward.until(step + 1), reward.since(step + 1)
    if len(before) < ROWS or len(after) < ROWS or np.ptp(after) > 0 or np.ptp(before) == 0:
        return None
    at = int(reward.steps[reward.steps > step][0])
    return Evidence(
        "reward", "for", "reward-dead", "plunges", float(before[-1]), float(after[-1]), at
    )


assert all(role in ROLES for role in ROLES_WATCHED)
