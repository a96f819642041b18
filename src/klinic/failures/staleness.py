"""The samples come from weights many updates old."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)

OLD = 4.0  # versions: where we begin to look, one or two being what asynchronous trainers run with
GEO_OFF, OUTSIDE, MISMATCH = 0.93, 0.10, 0.05  # the gauges' limits of weight-sync-failure
WIDE = (
    1.5  # 99 % quantile of the ratio (lr-too-high's limit): old samples widen it like large steps
)
FEW_COUNT = 0.3  # effective sample size (verl, docs/algo/rollout_corr.md): a third of the batch carries the update
GROWS = 0.5  # versions a step: a lag that grows like this has no end, the sync is broken


@failure(
    family="off-policy",
    stage="implementation",
    explains="kl-runaway lr-too-high reward-collapse no-learning plateau negative-kl entropy-explosion eval-regression "
    "weight-sync-failure truncation-rise length-explosion format-collapse repetition eval-overfit",
    treatments=(
        Treatment("fix-code", "queue_age"),
        set_knob("is_correction", to=True, restart="may"),
        set_knob("lr", scale=0.5),
    ),
)
def staleness(facts: Facts) -> Verdict:
    """Need: samples at least four versions old, a steady age, and a gauge that moved. Veto: the age grows for ever."""
    (lag,) = facts.need("staleness")
    if facts.few or lag.after < OLD:
        return ruled_out(seen(facts, "staleness", "against", "fresh"))
    late = lag.values[len(lag.values) // 2 :]
    steps = lag.steps[len(lag.steps) // 2 :]
    if len(late) > 2 and (late[-1] - late[0]) >= GROWS * (steps[-1] - steps[0]):
        return ruled_out(seen(facts, "staleness", "against", "grows"))
    geo, outside, gap = (facts.shape(r) for r in ("ratio_geo", "ratio_outside", "mismatch"))
    if geo is None and outside is None and gap is None:
        facts.need("mismatch")
    moved = [
        seen(facts, role, "for", f"{role.replace('_', '-')}-off")
        for role, off in (
            ("mismatch", gap is not None and abs(gap.after) >= MISMATCH),
            ("ratio_geo", geo is not None and geo.after < GEO_OFF),
            ("ratio_outside", outside is not None and outside.after >= OUTSIDE),
        )
        if off
    ]
    if not moved:
        return ruled_out(seen(facts, "staleness", "against", "harmless"))
    success = facts.success
    lost = success is not None and success.fell
    return present(
        "stop" if lost else "act",
        lag.onset,
        seen(facts, "staleness", "for", "old"),
        *moved,
        *_and(facts),
        seen(facts, facts.success_role, "for", "acc-lost", success) if lost else None,
        sure=len(moved) > 1,
    )


def _and(facts: Facts) -> list[Evidence]:
    """What old samples do elsewhere: a wide ratio, few samples that count, a critic that predicts another policy."""
    wide, ess, explained = (
        facts.shape(role) for role in ("ratio_high", "ess", "explained_variance")
    )
    found = []
    if wide is not None and wide.after >= WIDE:
        found.append(seen(facts, "ratio_high", "for", "ratio-wide"))
    if ess is not None and ess.after < FEW_COUNT:
        found.append(seen(facts, "ess", "for", "ess-low"))
    if explained is not None and explained.fell:
        found.append(seen(facts, "explained_variance", "for", "critic-behind"))
    return found
