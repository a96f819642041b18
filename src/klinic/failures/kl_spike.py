"""KL to the reference shoots up for one to three rows and comes back."""

from __future__ import annotations

from klinic.curves.jumps import Spike, change_at, departure, spikes
from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import (
    Evidence,
    Treatment,
    Verdict,
    benign,
    failure,
    present,
    ruled_out,
    seen,
    set_knob,
)

TIMES = 5.0  # times the level around it (our choice; failure_modes.json asks for isolation and a return, not a height)
SURE = 8.0  # noise units on the logarithm; k3 has heavy tails: three public runs hold such a row
FROM = 0.01  # nats/token; below it, quotients of a KL that starts at 0 mean nothing (kl-runaway's limit)
GREAT = 1.0  # nats/token: with a KL term in the loss, a gradient that jumps at less is its echo (our choice)
TOGETHER = 6.0  # noise units by which another curve moves in the same row or the one before
CRASH = 0.3  # part of the entropy that a destructive update takes (seed 001 section 2.3)
# What tells the causes of seed 001 section 2.4 apart: the curve that leaves its place with KL. In the order in which causes
# are looked for (section 9): implementation, scale, step.
CAUSES = (
    ("staleness", "stale"),
    ("mismatch", "gap"),
    ("ratio_high", "ratio-wide"),
    ("returns_std", "returns-scale"),
    ("reward_std", "reward-scale"),
    ("adv_max", "advantage-scale"),
    ("lr", "lr-up"),
    ("reward_low", "odd-rewards"),
    ("reward", "odd-batch"),
    ("len", "odd-length"),
    ("grad_norm", "gradient"),
    ("clip_frac", "clipped"),
)


@failure(
    family="step size",
    stage="step",
    explains="recovered-spike gradient-spike",
    treatments=(
        set_knob("lr", scale=0.5, only_if="destructive"),
        set_knob("kl_coef", to=0.005, only_if="destructive"),
        Treatment("inspect", "kl_tail"),
        Treatment("fix-code", "log_ratio_clip", restart="may"),
        Treatment("inspect", "spike_batch"),
    ),
    restart="may",
)
def kl_spike(facts: Facts) -> Verdict:
    """Need: one to three rows at five times the level around, and a return. Benign: nothing else moved in those rows."""
    (kl,) = facts.need("kl")
    found = [spike for spike in spikes(kl, TIMES, SURE) if spike.top >= max(FROM, kl.highest)]
    if not found:
        return ruled_out(seen(facts, "kl", "against", "no-spike"))
    top = max(found, key=lambda spike: spike.height)
    at = Onset(top.first, top.first, top.last)
    first = seen(
        facts,
        "kl",
        "for",
        "spike",
        times=top.height,
        top=top.top,
        level=top.level,
        step=top.first,
        count=len(found),
    )
    moved = [cause for cause in CAUSES if _with(facts, cause[0], top)]
    harm = _harm(facts, top)
    k1 = facts.shape("kl_k1")
    quiet = k1 is not None and k1 is not kl and not _with(facts, "kl_k1", top)
    if len(harm) > 1:
        together = Evidence("kl", "for", "destructive")
        return present("act", at, first, together, *harm, *_said(facts, moved))
    only_gradient = [sentence for _, sentence in moved] == ["gradient"] and (
        facts.level("kl") is not None and top.top < GREAT
    )
    if not moved or only_gradient:
        return benign(
            at,
            first,
            seen(facts, "kl_k1", "for", "k1-quiet") if quiet else None,
            *_said(facts, moved),
            Evidence("kl", "for", "nothing-else") if not moved else None,
        )
    return present("caution", at, first, *_said(facts, moved))


def _said(facts: Facts, moved: list[tuple[str, str]]) -> list[Evidence]:
    """The likeliest cause, and one more curve that moved."""
    return [seen(facts, role, "for", sentence) for role, sentence in moved[:2]]


def _with(facts: Facts, role: str, spike: Spike) -> bool:
    """Whether a curve left its place in the spike's first row or the one before: what an update does shows a row later."""
    shape = facts.shape(role)
    if shape is None:
        return False
    if role == "grad_norm" and shape.values[shape.steps == spike.first].max(initial=0) < (
        TIMES * shape.highest
    ):
        return False  # a KL term in the loss moves the gradient by itself: only a spike of its own says more
    earlier = shape.steps[shape.steps < spike.first]
    rows = [spike.first, int(earlier[-1])] if len(earlier) else [spike.first]
    off = [departure(shape, row) for row in rows]
    return any(abs(z) >= TOGETHER if role in ("reward", "len") else z >= TOGETHER for z in off) or (
        role == "reward_low" and any(z <= -TOGETHER for z in off)
    )


def _harm(facts: Facts, spike: Spike) -> list[Evidence]:
    """Signs of a destructive update: an entropy crash, clipping, right answers lost (seed 001 section 2.3)."""
    harm = []
    entropy, success = facts.shape("entropy"), facts.success
    if entropy is not None:
        change, z = change_at(entropy, spike.last + 1)
        if change < -CRASH * entropy.before and z >= TOGETHER:
            harm.append(seen(facts, "entropy", "for", "entropy-crash"))
    if _with(facts, "clip_frac", spike):
        harm.append(seen(facts, "clip_frac", "for", "clipped"))
    if success is not None:
        change, z = change_at(success, spike.last + 1)
        if change < 0 and z >= TOGETHER:
            harm.append(seen(facts, facts.success_role, "for", "acc-lost", success))
    return harm
