"""Failures of the verifier are scored as wrong answers."""

from __future__ import annotations

from klinic.curves.together import parting
from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen

SHARE = 0.05  # of samples on which the verifier failed
EVENTS = 2  # messages of a failing parser or time-out
RISE_Z = 6.0


@failure(
    family="reward",
    stage="implementation",
    explains="reward-collapse too-hard zero-advantage small-batch-noise reward-hacking plateau",
    treatments=(Treatment("fix-code", "verifier", restart="may"),),
    restart="may",
)
def verifier_error(facts: Facts) -> Verdict:
    """Need: a logged error share above 0.05, messages of the verifier, or reward and acc that part the wrong way."""
    share = facts.shape("verifier_error")
    if share is not None and share.after >= SHARE:
        return present(
            "act",
            share.crossing(SHARE, above=True) or early(facts),
            seen(facts, "verifier_error", "for", "errors"),
            seen(facts, "format_error", "for", "readable")
            if (unread := facts.shape("format_error")) is not None and not unread.rose
            else None,
            seen(facts, "partial", "for", "partly-right")
            if facts.shape("partial") is not None
            else None,
            sure=share.after > 2 * SHARE,
        )
    said = facts.events("verifier")
    if len(said) >= EVENTS:
        return present(
            "caution" if len(said) < 10 else "act",
            early(facts),
            seen(facts, "reward", "for", "said", count=len(said), text=said[0].lines[0][:80]),
        )
    unread = facts.shape("format_error")
    if share is not None and unread is not None and unread.rose:
        return ruled_out(
            seen(facts, "verifier_error", "against", "parse-misses", unread=unread.after)
        )
    if share is not None:
        return ruled_out(seen(facts, "verifier_error", "against", "no-errors"))
    reward, acc = facts.need("reward", "acc")
    if (
        not facts.few
        and acc.n >= 20
        and reward.fell
        and (parted := parting(acc, reward, RISE_Z, -3.0)) is not None
    ):
        return present(
            "act",
            reward.onset,
            seen(facts, "reward", "for", "reward-down", change=parted.follower_change),
            seen(facts, "acc", "for", "acc-up", change=parted.leader_change),
        )
    return ruled_out(seen(facts, "reward", "against", "agree"))
