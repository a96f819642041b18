"""Where the field guide and the literature disagree, the run's own evidence decides, and one line says so.

science.md 1.1 lists the disagreements (D1 to D14); those that are settled by a definition (D3, D12 to D14) live in the
trainer tables and the cards. Each function answers with a key of lang/*.toml and its values, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from klinic.diagnosis import Diagnosis, Note
from klinic.facts import Facts

Said = tuple[str, dict[str, Any]] | None

GROUPS_LEFT = 0.9  # zero-variance share below which groups still carry a gradient (D6)
GUIDE_ENTROPY = 0.3  # nats/token, the field guide's alarm (seed 000; D2)
GUIDE_TRUNC, DOCS_TRUNC = 0.15, 0.10  # seed 000; verl best_practices.rst (D8)
GUIDE_CLIP = 0.2  # seed 000 and 003 (D9)
GUIDE_ADV = 0.5  # seed 000 (D1)
GREW, STAYED = (
    1.2,
    1.1,
)  # times the early length: wrong answers grow, right ones do not (D4; chosen)
SCALED = ("adv_std/group_normalised", "adv_std/from_zero_std")
WARM = 1.15  # times the early entropy: the text turns to noise (D5; chosen)


def disputes(answer: Diagnosis, facts: Facts) -> tuple[Note, ...]:
    """One note for each disagreement that bears on this run."""
    found = (ask(answer, facts) for ask in ASKED)
    return tuple(Note(None, f"dispute.{said[0]}", said[1]) for said in found if said is not None)


def _named(answer: Diagnosis, *slugs: str) -> bool:
    return any(f.failure in slugs for f in answer.findings if f.status == "present")


def _length_cure(answer: Diagnosis, facts: Facts) -> Said:
    """D4: even weighting of sequences (seed 000) against none (Dr. GRPO): which answers grow decides."""
    if not _named(answer, "length-explosion"):
        return None
    if any(e.sentence == "reward-pays" for f in answer.findings for e in f.evidence):
        return "length-paid", {}
    right, wrong = facts.shape("len_right"), facts.shape("len_wrong")
    if right is None or wrong is None:
        return "length-unknown", {}
    values = {"right": right.after / right.before, "wrong": wrong.after / wrong.before}
    if values["wrong"] >= GREW and values["right"] <= STAYED:
        return "length-wrong", values
    return "length-both", values


def _kl_and_entropy(answer: Diagnosis, facts: Facts) -> Said:
    """D5: entropy rises in a runaway (seeds 000, 003) or crashes (seed 001)."""
    entropy = facts.shape("entropy")
    if entropy is None or not _named(answer, "kl-runaway"):
        return None
    values = {"before": entropy.before, "after": entropy.after}
    if entropy.rose and entropy.after >= WARM * entropy.before:
        return "kl-noise", values
    return ("kl-sharp", values) if entropy.fell else None


def _reversible(answer: Diagnosis, facts: Facts) -> Said:
    """D6: irreversible (seed 000), or saved in place (ProRL, Skywork): while groups differ there is a gradient."""
    zero = facts.shape("zero_std")
    if zero is None or not _named(answer, "entropy-collapse"):
        return None
    return ("collapse-open" if zero.after < GROUPS_LEFT else "collapse-closed"), {
        "zero": zero.after
    }


def _collapse_first(answer: Diagnosis, facts: Facts) -> Said:
    """D7: temperature first (seed 000), or what the updates do first (Skywork, DAPO)."""
    first = answer.first_action
    if first is None or first.failure != "entropy-collapse" or first.knob == "temperature":
        return None
    clip = facts.level("clip_frac")
    if first.knob == "clip_high" and clip is not None:
        return "collapse-clips", {"clip": clip.highest}
    if first.knob == "updates_per_batch":
        return "collapse-updates", {"updates": facts.number("updates_per_batch")}
    return None


def _entropy_level(answer: Diagnosis, facts: Facts) -> Said:
    """D2: an absolute alarm at 0.3 nats, or the run's own level."""
    entropy = facts.shape("entropy")
    if entropy is None or entropy.after >= GUIDE_ENTROPY or _named(answer, "entropy-collapse"):
        return None
    if entropy.before <= 0 or entropy.fell:
        return None
    return "entropy-level", {"before": entropy.before, "after": entropy.after}


def _truncation_level(answer: Diagnosis, facts: Facts) -> Said:
    """D8: 0.15 (seed 000), 0.10 (verl): the rise over the run's own start counts."""
    trunc = facts.level("trunc")
    if trunc is None or not DOCS_TRUNC <= trunc.after < GUIDE_TRUNC:
        return None
    return "trunc-level", {"before": trunc.before, "after": trunc.after}


def _clip_level(answer: Diagnosis, facts: Facts) -> Said:
    """D9: 0.2 holds for ratios of single tokens; a ratio of sequences has no such limit."""
    clip = facts.level("clip_frac")
    whole = str(facts.setting("importance_level") or "token").startswith("sequence")
    return (
        ("clip-level", {"after": clip.after})
        if clip is not None and whole and clip.after >= GUIDE_CLIP
        else None
    )


def _kl_no_cure(answer: Diagnosis, facts: Facts) -> Said:
    """D10: can a KL term save a hacked reward."""
    if not _named(answer, "reward-hacking") or facts.shape("kl") is None:
        return None
    return "kl-no-cure", {}


def _mask_truncated(answer: Diagnosis, facts: Facts) -> Said:
    """D11: mask cut responses (DAPO), or not (Skywork)."""
    trunc = facts.level("trunc")
    if trunc is None or trunc.after < GUIDE_TRUNC:
        return None
    return ("mask-truncated", {}) if _named(answer, "truncation-rise") else None


def _advantages(answer: Diagnosis, facts: Facts) -> Said:
    """D1: the band of 0.8 to 1.2 holds for advantages divided by the std of their group."""
    adv, metric = facts.shape("adv_std"), facts.metric("adv_std")
    zero = facts.shape("zero_std")
    if adv is None or metric is None or zero is None or adv.after >= GUIDE_ADV:
        return None
    if metric.name in SCALED or zero.after > 1 - GUIDE_ADV**2:
        return None
    return "adv-scale", {"after": adv.after, "zero": zero.after}


ASKED: tuple[Callable[[Diagnosis, Facts], Said], ...] = (
    _length_cure,
    _kl_and_entropy,
    _reversible,
    _collapse_first,
    _kl_no_cure,
    _mask_truncated,
    _entropy_level,
    _truncation_level,
    _clip_level,
    _advantages,
)
