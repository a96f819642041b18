"""Entropy falls to a small part of the run's own early level: exploration is over."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Evidence, Verdict, failure, present, ruled_out, seen, set_knob

GONE = 0.2  # of the own early level: collapsed (science.md D2)
FADING = 0.4  # of the own early level: act, if nothing is gained by it (science.md D2)
NATS_SEED = 0.3  # nats/token; "act below 0.3" holds only for models that began above 1 (seed 000, science.md D2)
NATS_STARTED = 1.0
NATS_LOW_START = 0.3  # a model that starts below this is a sharp model, not a collapsing one (public runs, quirk 15)
SOLVED = 0.95  # share of right answers at which low entropy is what learning looks like
# By position (seed 001 section 4.5): the part whose share left is at most half of the part that kept most. A part that began
# below this, in nats/token, was fixed from the start.
APART = 0.5
NONE = 0.02  # of its early entropy: parts that kept less than this are alike
FREE = 0.2  # nats/token: a part that began below it never was free (our choice)
PLACES = (
    ("entropy_start", "opening-fixed"),
    ("entropy_middle", "middle-fixed"),
    ("entropy_end", "ending-fixed"),
)
DISTINCT = 0.95  # of a group's samples are distinct texts: no collapse yet (the one discriminator, science.md finding 10; the limit is our choice)
GROUPS_GONE = 0.25  # rise of the zero-variance share that confirms it


@failure(
    family="exploration",
    stage="step",
    explains="zero-advantage too-hard too-easy plateau reward-collapse no-learning length-collapse eval-regression "
    "truncation-rise kl-runaway small-batch-noise format-collapse repetition template-collapse language-mixing eval-overfit",
    treatments=(
        set_knob("entropy_coef", to=0.0, only_if="negative-bonus"),
        set_knob("clip_high", to=0.28, only_if="clips"),
        set_knob("updates_per_batch", to=1, only_if="several-updates"),
        set_knob("temperature", add=0.1),
        set_knob("entropy_coef", to=0.001),
        set_knob("lr", scale=0.5),
    ),
)
def entropy_collapse(facts: Facts) -> Verdict:
    """Need: entropy at or below 0.2 of its early level. Veto: the task is solved. Support: groups stop differing."""
    different = facts.shape("uniq")
    if facts.shape("entropy") is None and different is not None and different.after >= DISTINCT:
        return ruled_out(seen(facts, "uniq", "against", "different-samples"))
    (entropy,) = facts.need("entropy")
    share = entropy.after / max(entropy.before, 1e-9)
    nats = facts.level("entropy") is not None
    low = nats and entropy.before < NATS_LOW_START
    if facts.few or not entropy.fell or (low and share > GONE / 2):
        return ruled_out(seen(facts, "entropy", "against", "entropy-lives", share=share))
    success, zero = facts.success, facts.shape("zero_std")
    right = facts.success_level
    if right is not None and right.after >= SOLVED:
        return ruled_out(seen(facts, facts.success_role, "against", "solved", success))
    gained = success is not None and success.rose
    confirmed = zero is not None and zero.after - zero.before >= GROUPS_GONE
    seed_rule = nats and entropy.before >= NATS_STARTED and entropy.after < NATS_SEED
    if share <= GONE and (confirmed or not gained or share <= GONE / 2):
        severity = "stop"
    elif different is not None and different.after >= DISTINCT:
        return ruled_out(seen(facts, "uniq", "against", "different-samples"))
    elif (share <= FADING and not gained) or (seed_rule and (confirmed or not gained)):
        severity = "act"
    else:
        return ruled_out(seen(facts, "entropy", "against", "entropy-lives", share=share))
    return present(
        severity,
        entropy.onset,
        seen(facts, "entropy", "for", "entropy-gone", share=share),
        _place(facts),
        seen(facts, "zero_std", "for", "groups-gone") if confirmed else None,
        seen(facts, facts.success_role, "for", "frozen", success)
        if success is not None and not gained
        else None,
        seen(facts, "uniq", "for", "same-samples")
        if (u := facts.shape("uniq")) is not None and u.fell
        else None,
        sure=share <= GONE / 2,
    )


def _place(facts: Facts) -> Evidence | None:
    """Which part of the response lost its entropy first, where entropy is logged by position and the parts differ."""
    left = {
        (role, sentence): max(shape.after / shape.before, NONE)
        for role, sentence in PLACES
        if (shape := facts.shape(role)) is not None and shape.before >= FREE
    }
    if len(left) < 2 or min(left.values()) > min(GONE, APART * max(left.values())):
        return None
    role, sentence = min(left, key=lambda place: left[place])
    return seen(facts, role, "for", sentence, share=left[role, sentence])
