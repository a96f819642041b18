"""One treatment as one change in the trainer's own flag, with its old and its next value."""

from __future__ import annotations

from typing import Any

from klinic.configuration import flag_value
from klinic.diagnosis import Action, Finding
from klinic.facts import Facts
from klinic.failures import AS_SAID, Treatment
from klinic.trainers import GENERIC, Knob, tables

CLIPS = 0.001  # clip fraction above which the clip range does anything
MOST_OF_CARD = (
    0.95  # a sampler's context and graphs live outside its pool (vLLM, --gpu-memory-utilization)
)
NORM_LIMIT = 1.0  # where none is set (0): what TRL, verl and OpenRLHF have by default
NAMED = ("dr_grpo", "sequence")  # next values that every trainer spells in its own way


def action(treatment: Treatment, finding: Finding, facts: Facts) -> Action | None:
    """The action, or None where it does not apply to this run or this trainer has no such knob."""
    if not _applies(treatment, finding, facts):
        return None
    if treatment.kind != "set":
        return Action(
            treatment.kind,
            treatment.knob,
            restart=treatment.restart,
            why=f"action.{treatment.why or treatment.knob}",
            failure=finding.failure,
        )
    run = facts.run
    table = tables()[run.trainer.name]
    knob = table.knob.get(treatment.knob)
    if knob is None:
        if run.trainer.name != GENERIC:
            return None
        knob = Knob(treatment.knob)
    stated = flag_value(run.config.get(treatment.knob))
    if treatment.knob == "clip_high" and stated is None:
        stated = run.setting("clip_low") or run.setting("clip_range")
    lr = facts.shape("lr")
    if treatment.knob == "lr" and stated is None and lr is not None and lr.values.max() > 0:
        stated = float(lr.values.max())
    old = stated if stated is not None else knob.default
    # A message may state the value itself: what fits, what is free.
    given = finding.evidence[0].values.get("next", {}) if finding.evidence else {}
    if treatment.to is AS_SAID and treatment.knob not in given:
        return None
    new = given.get(treatment.knob) or _new(treatment, old, knob)
    if old in knob.already or (new is None and treatment.to in NAMED):
        return None
    if _stands(old, new) or (new is None and old is not None) or (new is not None and new == old):
        return None
    if treatment.knob == "max_grad_norm" and _binds_nowhere(new, facts):
        return None
    style = knob.style or table.style
    flag = flag_in(knob.flag, style)
    return Action(
        "set",
        treatment.knob,
        flag,
        old,
        new,
        command(knob.flag, new, style) if treatment.knob in table.knob else None,
        treatment.restart,
        f"action.{treatment.why or treatment.knob}",
        finding.failure,
    )


def lacks_knob(treatment: Treatment, finding: Finding, facts: Facts) -> bool:
    """Whether the treatment would be next and this trainer has no such setting."""
    name = facts.run.trainer.name
    return (
        treatment.kind == "set"
        and name != GENERIC
        and treatment.knob not in tables()[name].knob
        and _applies(treatment, finding, facts)
    )


def _binds_nowhere(limit: Any, facts: Facts) -> bool:
    """Whether every gradient that was logged is smaller than a limit: setting it would change nothing."""
    gradient = facts.shape("grad_norm")
    return gradient is not None and isinstance(limit, float | int) and gradient.highest < limit


def _applies(treatment: Treatment, finding: Finding, facts: Facts) -> bool:
    need = treatment.only_if
    if not need:
        return True
    if need == "clips":
        clip = facts.level("clip_frac")
        return clip is not None and clip.highest > CLIPS
    if need == "several-updates":
        return (facts.number("updates_per_batch") or 1) > 1
    if need == "bonus":
        return (facts.number("entropy_coef") or 0) > 0
    if need == "negative-bonus":
        return (facts.number("entropy_coef") or 0) < 0
    if need == "high-clip":
        return (facts.number("clip_high") or 0) > 0.2
    if need == "fixed-scale":
        return (facts.number("loss_scale") or 0) > 0
    if need in ("gradient-arrives", "gradient-unseen"):
        gradient = facts.shape("grad_norm")
        return (gradient is not None and gradient.after > 0) == (need == "gradient-arrives")
    if need == "truncates":
        trunc = facts.level("trunc")
        return trunc is not None and trunc.after > 0.1
    # What the evidence says decides the rest: the treatment names the sentence that calls for it.
    said = finding.evidence[0].values if finding.evidence else {}
    return (
        finding.side == need
        or need in said.get("cases", ())
        or any(e.sentence == need for e in finding.evidence)
    )


def _new(treatment: Treatment, old: Any, knob: Knob) -> Any:
    spelled = str(treatment.to).lower()
    if spelled in knob.values:
        return knob.values[spelled]
    if treatment.to in NAMED and knob.flag != treatment.knob:
        return None
    if treatment.to is not None:
        if treatment.knob == "kl_coef" and isinstance(old, int | float) and old >= treatment.to:
            return _round(old * 3)
        if (
            treatment.knob == "entropy_coef"
            and isinstance(old, int | float)
            and treatment.to
            and old >= treatment.to
        ):
            return _round(old * 3)
        return treatment.to
    if old is None and treatment.least is not None:
        return treatment.least
    if not isinstance(old, int | float) or isinstance(old, bool):
        return None
    if treatment.knob == "max_grad_norm" and old == 0:
        return NORM_LIMIT
    new = old * treatment.scale if treatment.scale is not None else old + (treatment.add or 0)
    if treatment.knob == "rollout_memory":
        new = min(new, MOST_OF_CARD)
    return max(1, round(new)) if isinstance(old, int) and treatment.add is None else _round(new)


def _stands(old: Any, new: Any) -> bool:
    """Whether the value is already so; configurations spell truth in their own way."""
    return old is not None and new is not None and str(old).lower() == str(new).lower()


def _round(value: float) -> float:
    return float(f"{value:.3g}")


def flag_in(flag: str, style: str) -> str:
    """A flag as the trainer's configuration names it: a line of YAML has no dashes before it."""
    return flag.lstrip("-") if style in ("yaml", "json") else flag


def command(flag: str, new: Any, style: str) -> str | None:
    """A flag with its value as the trainer takes it; None where the next value is unknown.

    style: cli (``--beta 0.1``), switch (``--use-tis``, no value), override and python (``a.b=1``), yaml (``beta: 0.1``),
    json (``'{"method.cliprange": 0.1}'``, one argument).
    """
    if new is None:
        return None
    if style == "switch" and str(new).lower() == "true":
        return flag
    text = f"{new:g}" if isinstance(new, float) else str(new)
    if style in ("yaml", "json", "override") and isinstance(new, bool):
        text = text.lower()
    if style == "json":
        word = isinstance(new, str) and text.lower() not in ("true", "false")
        return f"""'{{"{flag_in(flag, style)}": {f'"{text}"' if word else text}}}'"""
    if style in ("override", "python"):
        return f"{flag}={text}"
    if style == "yaml":
        return f"{flag_in(flag, style)}: {text}"
    return f"{flag} {text}"


def line_in(how: str, style: str) -> str:
    """Flags of a command line (``--a 1 --b``) as the lines of a YAML configuration, for a trainer that takes those."""
    if style != "yaml" or not how.startswith("--"):
        return how
    pairs = [part.split(maxsplit=1) for part in how[2:].split(" --")]
    lines = [f"{flag}: {rest[0] if rest else 'true'}" for flag, *rest in pairs]
    return ", ".join(
        line.replace(": True", ": true").replace(": False", ": false") for line in lines
    )
