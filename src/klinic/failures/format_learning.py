"""The format is learnt first: reward runs ahead of acc for a while, and acc goes on later."""

from __future__ import annotations

from klinic.curves.together import change_between
from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen
from klinic.failures._format import format_curve

RISE = 0.10  # of the answers; smaller gains part nothing
LEARNT = 0.9  # of the whole rise: then the format counts as learnt
EARLY = 0.25  # of the run by which it must be (failure_modes.json: gap in the first 15 %, here with the tail of the rise)
FOLLOWS_Z = 3.0  # standard errors by which acc must go on afterwards


@failure(family="benign", stage="benign")
def format_learning(facts: Facts) -> Verdict:
    """Need: the format is learnt early and stays, acc rises after it. Veto: acc never goes on (reward-hacking)."""
    ok, role = format_curve(facts)
    (acc,) = facts.need("acc")
    whole = ok.highest - ok.before if ok.n < 40 else ok.highest - float(ok.values[:3].mean())
    at = ok.crossing(ok.highest - (1 - LEARNT) * whole - ok.noise, above=True)
    last = facts.run.first + EARLY * (facts.run.last - facts.run.first)
    if facts.few or whole < RISE or whole < 3 * ok.noise or at is None or at.step > last:
        return ruled_out(seen(facts, role, "against", "no-early-rise", ok))
    along = change_between(acc, facts.run.first, at.step)[1]
    if along >= FOLLOWS_Z:  # no gap at all
        return ruled_out(seen(facts, role, "against", "no-early-rise", ok))
    if change_between(acc, at.step, facts.run.last)[1] < FOLLOWS_Z:
        return ruled_out(seen(facts, "acc", "against", "acc-stays"))
    return benign(
        at,
        seen(facts, role, "for", "learnt", ok, step=at.step),
        seen(facts, "acc", "for", "acc-follows"),
    )
