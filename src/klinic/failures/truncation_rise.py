"""More and more responses are cut at the cap."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Treatment, Verdict, early, failure, present, ruled_out, seen, set_knob

WARN = 0.10  # share cut: "often mean you are truncating" (verl best_practices.rst:122)
ACT = 0.15  # share cut that must be handled (seed 000)
RISE = 0.08  # above the own start
HALF = 0.5


@failure(
    family="length",
    stage="step",
    explains="",
    treatments=(
        set_knob("max_new_tokens", scale=2),
        set_knob("mask_truncated", to=True),
        Treatment("fix-reward", "length_penalty", restart="may"),
    ),
    restart="may",
)
def truncation_rise(facts: Facts) -> Verdict:
    """Need: truncated share above 0.10 and above its own start; from a single line: above 0.15."""
    (trunc,) = facts.need_level("trunc")
    if facts.few:
        if trunc.after >= ACT:
            return present("caution", early(facts), seen(facts, "trunc", "for", "cut-now"))
        return ruled_out(seen(facts, "trunc", "against", "few-cut"))
    if trunc.after < WARN or trunc.after - trunc.before < RISE or not trunc.rose:
        # Back at the cap after a dip: the run's lowest level is its baseline.
        back = (
            trunc.after >= HALF
            and trunc.after - trunc.lowest >= HALF
            and trunc.level_over(0.85, 1.0) >= HALF
        )
        if not back:
            return ruled_out(seen(facts, "trunc", "against", "few-cut"))
        return present(
            "caution",
            trunc.crossing(HALF, above=True, keep=0.9),
            seen(facts, "trunc", "for", "cut-again"),
        )
    success = facts.success
    harmless = success is not None and success.rose
    severity = "act" if trunc.after >= ACT and not harmless else "caution"
    return present(
        severity, trunc.onset, seen(facts, "trunc", "for", "more-cut"), sure=trunc.after >= HALF
    )
