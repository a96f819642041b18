"""Entropy rises far above its early level and nothing is gained by it."""

from __future__ import annotations

from klinic.facts import Facts
from klinic.failures import Evidence, Verdict, failure, present, ruled_out, seen, set_knob

RISEN = 1.5  # of the own early level (failure_modes.json, rllm #116: 2.0 nats came with a loss of performance)
PUSHED = 1.25  # the same where the loss is known to push entropy up (lab: 1.28 with nothing gained)
FAR = 2.5  # of the own early level: act whatever else is logged
HOT = 2.0  # nats/token; "ok as long as it is < 1", 2.0 came with a loss of performance (rllm #116)
CAUTION_RISE = 0.25  # nats/token; a rise from a very low level to a low level is only worth minding


@failure(
    family="exploration",
    stage="step",
    explains="reward-collapse truncation-rise length-explosion eval-regression zero-advantage format-collapse repetition language-mixing",
    treatments=(
        set_knob("entropy_coef", to=0.0, only_if="bonus"),
        set_knob("clip_high", to=0.2, only_if="high-clip"),
        set_knob("temperature", add=-0.1),
        set_knob("lr", scale=0.5),
    ),
)
def entropy_explosion(facts: Facts) -> Verdict:
    """Need: entropy 1.5 times its early level, reward and acc not rising. Veto: reward or acc rises with it."""
    (entropy,) = facts.need("entropy")
    share = entropy.after / max(entropy.before, 1e-9)
    reward, success = facts.shape("reward"), facts.success
    logged = facts.shape("entropy_coef")  # a controller may have moved it
    bonus = logged.after if logged is not None else facts.number("entropy_coef") or 0.0
    if facts.few or not entropy.rose or share < (PUSHED if bonus > 0 else RISEN):
        return ruled_out(seen(facts, "entropy", "against", "entropy-normal", share=share))
    gained = (success is not None and success.rose) or (reward is not None and reward.rose)
    kept = (success, reward, facts.shape("heldout"))
    lost = any(shape is not None and shape.fell for shape in kept)
    if gained and not lost:
        return ruled_out(seen(facts, "reward", "against", "reward-rises", share=share))
    nats = facts.level("entropy") is not None
    small = nats and entropy.after - entropy.before < CAUTION_RISE
    severity = (
        "stop"
        if lost and share >= FAR
        else "act"
        if (lost or bonus > 0 or (share >= FAR and nats and entropy.after >= HOT)) and not small
        else "caution"
    )
    return present(
        severity,
        entropy.onset,
        seen(facts, "entropy", "for", "entropy-up", share=share),
        seen(facts, "reward", "for", "nothing-gained") if reward is not None else None,
        Evidence("entropy", "for", "bonus", values={"coef": bonus}) if bonus > 0 else None,
        *[
            seen(facts, role, "for", sentence)
            for role, sentence, wrong in (
                ("format_error", "format-breaks", "rose"),
                ("format_ok", "format-lost", "fell"),
                ("heldout", "eval-falls", "fell"),
            )
            if (shape := facts.shape(role)) is not None and getattr(shape, wrong)
        ],
    )
