"""Phrases that several formats share, all taken from the findings as they are."""

from __future__ import annotations

from klinic.calibration import hit_rates
from klinic.diagnosis import Action, Diagnosis, Finding, Note
from klinic.failures import STAGES, Evidence, cards
from klinic.render.as_json import how, note_text
from klinic.text import figure, page, say, say_of
from klinic.vitals import ROLES


def metric_title(role: str, lang: str) -> str:
    """The short name of a role as tables print it."""
    return (
        role
        if role in ("reward", "acc", "entropy", "kl", "adv_std", "clip_frac", "ratio_mean", "len")
        or role not in ROLES
        else ROLES[role].says("title", lang)
    )


def curve_title(e: Evidence, lang: str) -> str:
    """The short name of the curve behind a line of evidence: one task's accuracy is not the run's."""
    task = e.values.get("task")
    named = task and (e.metric == "acc" or e.metric == f"acc_task/{task}")
    return f"acc ({task})" if named else metric_title(e.metric, lang)


def levels(e: Evidence) -> str:
    """``1.84 -> 0.01``, or one value where nothing moved."""
    if e.before is None or e.after is None:
        return ""
    if e.word in ("flat", "noisy") and figure(e.before) == figure(e.after):
        return figure(e.after)
    return f"{figure(e.before)} -> {figure(e.after)}"


def shape(e: Evidence, lang: str) -> str:
    """``plunges from step 112``."""
    if e.before is None:
        return ""
    return shaped(e.word, e.onset, lang)


def shaped(word: str, onset: int | None, lang: str) -> str:
    """A shape with its onset; a curve that levels off began to rise there, not to level off."""
    if onset is None:
        return say(f"word.{word}", lang)
    if word == "levels off":
        return say("text.levels_off", lang, step=onset)
    return f"{say(f'word.{word}', lang)} {say('text.from_step', lang, step=onset)}"


def since(finding: Finding, lang: str) -> str:
    """``since step 112 (105 to 118)``."""
    at = finding.onset
    if at is None:
        return ""
    if at.step == at.low == at.high:
        return (
            say("text.from_step", lang, step=at.step)
            if at.step > 1
            else say("text.from_start", lang)
        )
    return say("text.since", lang, step=at.step, low=at.low, high=at.high)


def text_of(finding: Finding, e: Evidence, lang: str) -> str:
    """The evidence as a sentence."""
    values = {"before": e.before, "after": e.after, "onset": e.onset, **e.values}
    return say_of(
        finding.failure, e.sentence, lang, {k: v for k, v in values.items() if v is not None}
    )


def change(action: Action, lang: str) -> str:
    """The one change: the flag with its new value, or what to do where no flag helps."""
    if action.command is not None:
        old = f" {say('text.was', lang, old=action.old)}" if action.old is not None else ""
        return say("text.change", lang, command=action.command + old)
    if action.kind == "set":
        return say("text.do", lang, what=f"{action.flag}: {say(action.why, lang)}")
    return say("text.do", lang, what=say(action.why, lang))


def short(action: Action, lang: str) -> str:
    """An action in a list."""
    return action.command or (
        action.flag if action.kind == "set" and action.flag else say(action.why, lang)
    )


def note(n: Note, lang: str) -> str:
    """A note as a sentence."""
    return note_text(n.sentence, n.values, lang)


def back(answer: Diagnosis, lang: str) -> str | None:
    """Where to go back to."""
    point = answer.roll_back_to
    if point is None:
        return None
    state = (
        say("text.incomplete", lang, parts=", ".join(point.missing))
        if point.missing
        else say("text.complete", lang)
    )
    return say("text.go_back", lang, name=point.name, state=state)


def smoke(answer: Diagnosis, lang: str) -> str:
    """The smoke test to run after the one change."""
    test = answer.smoke
    if test is None:
        return ""
    flags = f" ({' '.join(test.flags)})" if test.flags else ""
    return say(
        "text.smoke", lang, flags=flags, metric=test.metric, first=test.first, last=test.last
    )


def unchecked(answer: Diagnosis, lang: str) -> list[str]:
    """``reward-hacking (needs acc: set trainer.test_freq=5)`` for every failure that could not be checked."""
    found = []
    for f in answer.findings:
        if f.status != "not_checked":
            continue
        if f.crashed:
            found.append(f"{f.failure} ({say('text.crashed', lang, what=f.crashed)})")
        else:
            needs = [
                say("text.needs_how", lang, metric=m.metric, how=how(m, lang))
                if how(m, lang)
                else say("text.needs", lang, metric=m.metric)
                for m in f.missing
            ]
            found.append(f"{f.failure} ({'; '.join(needs)})")
    return found


def stages(answer: Diagnosis, lang: str) -> str:
    """How many failures of each stage were checked, in the order in which causes are looked for."""
    counts = []
    for stage in STAGES[:-1]:
        asked = [f for f in answer.findings if cards()[f.failure].stage == stage]
        if asked:
            checked = sum(f.status != "not_checked" for f in asked)
            counts.append(f"{say(f'stage.{stage}', lang)} {checked}/{len(asked)}")
    return say("text.stages", lang, list=", ".join(counts))


def title(slug: str, lang: str) -> str:
    """The failure's name in the language."""
    return page(slug, lang).title


def hit_rate(finding: Finding, lang: str) -> str:
    """How often the finding's word of confidence was right on labelled runs, as a sentence."""
    rate = hit_rates().get(finding.confidence or "")
    if rate is None:
        return ""
    word = say(f"confidence.{finding.confidence}", lang)
    return say("text.hit_rate", lang, word=word, share=f"{rate.share:.0%}", runs=rate.runs)
