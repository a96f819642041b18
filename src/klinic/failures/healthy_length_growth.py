"""Responses grow and more of them are right: the length is used."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Verdict, benign, failure, ruled_out, seen

GROWN = 1.25  # of the own early length
TRUNC_FINE = 0.10  # above it answers may be cut (verl best_practices.rst:122)


@failure(family="benign", stage="benign")
def healthy_length_growth(facts: Facts) -> Verdict:
    """Need: length and acc both rise, few truncated (seed 000: 78 to 152 tokens with acc 21 to 57 %)."""
    length, acc = facts.need("len", "acc")
    trunc = facts.level("trunc")
    if (
        length.rose
        and length.after >= GROWN * length.before
        and acc.rose
        and (trunc is None or trunc.after < TRUNC_FINE)
    ):
        return benign(
            length.onset,
            seen(facts, "len", "for", "length-up"),
            seen(facts, "acc", "for", "acc-up"),
        )
    return ruled_out(seen(facts, "len", "against", "not-growing"))
