"""The rollout engine samples with other weights than the trainer has."""

from __future__ import annotations

from klinic.curves.onset import Onset
from klinic.curves.shape import SUDDEN, Shape
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._weights import at_rest

GEO_OFF = 0.93  # geometric ratio; healthy lab runs stay above 0.99, broken sync fell below 0.97 in 5 steps (lab.md 6.1)
OUTSIDE = 0.10  # share of tokens outside the clip band (lab.md section 3)
MEAN_OFF = 0.05  # arithmetic mean away from 1: by identity it does not move with drift (science.md finding 1)
MISMATCH = 0.05  # nats/token
MISMATCH_GROWTH = (
    4.0  # times its own level; a flat level from step 0 is a difference of engines, not of weights
)
PROBABILITY = 0.03  # the same gauge as a difference of probabilities
CLIP = 0.10  # clip fraction that stops a run (half of lr-too-high's limit; our choice)


@failure(
    family="off-policy",
    stage="implementation",
    explains="kl-runaway lr-too-high reward-collapse no-learning plateau negative-kl entropy-explosion "
    "eval-regression small-batch-noise nan reward-hacking format-collapse repetition eval-overfit",
    treatments=(Treatment("fix-code", "weight_sync"), Treatment("inspect", "weight_checksum")),
)
def weight_sync_failure(facts: Facts) -> Verdict:
    """Need: one gauge of trainer against sampler leaves its place and stays away. Veto: the gauge is flat."""
    gauges = [
        (role, shape)
        for role in ("ratio_geo", "ratio_outside", "mismatch", "ratio_mean")
        if (shape := _gauge(facts, role)) is not None
    ]
    if not gauges:
        facts.need_level("mismatch", "ratio_mean")
    off = [
        (role, onset)
        for role, shape in gauges
        if not facts.few and (onset := _off(facts, role, shape)) is not None
    ]
    lag = facts.shape("staleness")
    if off and at_rest(facts):
        return ruled_out(Evidence("lr", "against", "weights-at-rest"))
    gap = facts.shape("mismatch")
    if off and gap is not None and "mismatch" not in (role for role, _ in off):
        # Trainer and sampler agree on the tokens before the update: what the ratio shows is the update itself.
        return ruled_out(seen(facts, "mismatch", "against", "gauge-flat"))
    # A version number says what was sent, not what arrived: a gap that grows from nothing with the updates is an adapter
    # that never arrives (verl #7495); one that appears at once is a change of the engine.
    fresh = lag is not None and lag.highest < 1
    growing = [role for role, _ in off if _grows(facts.shape(role))]
    if off and fresh and not growing:
        return ruled_out(seen(facts, "staleness", "against", "weights-current"))
    if not off:
        telling = [role for role, _ in gauges if role != "ratio_mean"]
        if not telling and not _sampler_ratio(facts):
            # A flat arithmetic mean of new over old is 1 by identity: it rules nothing out.
            facts.need_level("mismatch")
        return ruled_out(seen(facts, (telling or ["ratio_mean"])[0], "against", "gauge-flat"))
    first = min((onset for _, onset in off), key=lambda onset: onset.step)
    clip, adv, entropy = facts.level("clip_frac"), facts.shape("adv_std"), facts.shape("entropy")
    return present(
        "stop" if len(off) > 1 or (clip is not None and clip.after >= CLIP) else "act",
        first,
        *[seen(facts, role, "for", f"{role.replace('_', '-')}-off") for role, _ in off],
        seen(facts, "staleness", "for", "never-delivered") if fresh else None,
        seen(facts, "clip_frac", "for", "clip-up") if clip is not None and clip.rose else None,
        seen(facts, "adv_std", "for", "groups-fine")
        if adv is not None and adv.after > 0.5
        else None,
        seen(facts, "entropy", "for", "entropy-fine")
        if entropy is not None and not entropy.fell
        else None,
        sure=len(off) > 1,
    )


def _gauge(facts: Facts, role: str) -> Shape | None:
    """The gauge where its level counts; of weights of unknown scale the drift counts while no length explains it."""
    known, length = facts.level(role), facts.shape("len")
    steady = role == "ratio_mean" and length is not None and not length.changed
    return facts.shape(role) if known is None and steady else known


def _grows(gauge: Shape | None) -> bool:
    return gauge is not None and gauge.changed and gauge.haste > SUDDEN


def _sampler_ratio(facts: Facts) -> bool:
    metric = facts.metric("ratio_mean")
    return metric is not None and "train_over_rollout" in metric.name


def _off(facts: Facts, role: str, shape: Shape) -> Onset | None:
    if role == "ratio_geo":
        return (
            shape.onset or shape.crossing(GEO_OFF, above=False)
            if shape.after < GEO_OFF and shape.before > GEO_OFF
            else None
        )
    if role == "ratio_outside":
        return shape.onset if shape.after >= OUTSIDE and shape.after > 3 * shape.before else None
    if role == "mismatch":
        metric = facts.metric("mismatch")
        level = PROBABILITY if metric is not None and "prob_diff" in metric.name else MISMATCH
        return (
            shape.onset
            if abs(shape.after) >= level and abs(shape.after) >= MISMATCH_GROWTH * abs(shape.before)
            else None
        )
    if facts.level("ratio_mean") is None:
        off = abs(shape.after - shape.before) >= MEAN_OFF * abs(shape.before)
    else:
        off = abs(shape.after - 1) >= MEAN_OFF and abs(shape.before - 1) < MEAN_OFF
    if off and shape.z >= 6:
        return shape.onset
    return None
