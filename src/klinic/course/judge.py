"""An answer against a log: whether it is right, and if not which curve contradicts it, in that log's own numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from klinic.course.desk import Desk
from klinic.course.scenes import Log, log, save
from klinic.course.words import tell
from klinic.diagnosis import Diagnosis, Finding
from klinic.failures import Evidence
from klinic.render import _words as words


@cache
def diagnosis(name: str, turn: int) -> Diagnosis:
    """klinic's own diagnosis of a log, read from a file as any other log is."""
    import tempfile

    from klinic.diagnose import diagnose

    with tempfile.TemporaryDirectory(prefix="klinic-course-") as folder:
        return diagnose(save(log(name, turn), Path(folder)))


def diagnosed(desk: Desk, one: Log) -> Diagnosis:
    """klinic's diagnosis of a log of the current exercise."""
    if desk.task.kind == "lab":
        from klinic.course.hidden import lab_diagnosis

        return lab_diagnosis(desk)
    return diagnosis(one.name, desk.progress.turn)


def right(one: Log, slug: str) -> bool:
    """Whether the answer counts."""
    return slug == one.answer or slug in one.also


def agrees(one: Log, answer: Diagnosis) -> bool:
    """Whether klinic itself says of the log what the exercise expects."""
    main = answer.main
    if main is not None:
        return right(one, main.failure)
    benign = {f.failure for f in answer.findings if f.status == "benign"}
    return one.answer in benign or "healthy" in (one.answer, *one.also)


def contradiction(one: Log, answer: Diagnosis, slug: str, lang: str, dated: bool = True) -> str:
    """The curve that the wrong answer ``slug`` cannot explain, with its numbers here."""
    finding = next((f for f in answer.findings if f.failure == slug), None)
    if slug == "healthy" and answer.main is not None:
        told = _told(answer.main, answer.main.evidence)
        if told is not None:
            return _sentence(answer.main, told, lang)
    if finding is not None and finding.status in ("ruled_out", "not_checked"):
        told = _told(finding, finding.evidence)
        if told is not None:
            return _sentence(finding, told, lang)
    if finding is not None and finding.status == "consequence":
        return tell("judge.follows", lang, slug=slug, curve=curve(one, answer, lang, (), dated))
    return tell("judge.unexplained", lang, slug=slug, curve=curve(one, answer, lang, (), dated))


def _told(finding: Finding, evidence: tuple[Evidence, ...]) -> Evidence | None:
    return next((e for e in evidence if e.before is not None), None)


def _sentence(finding: Finding, e: Evidence, lang: str) -> str:
    said = words.text_of(finding, e, lang)
    return tell(
        "judge.curve",
        lang,
        metric=words.metric_title(e.metric, lang),
        levels=words.levels(e),
        shape=words.shape(e, lang),
        said=said,
    )


def curve(
    one: Log, answer: Diagnosis, lang: str, roles: Sequence[str] = (), dated: bool = True
) -> str:
    """Curves of a log in words, the deciding ones by default: ``entropy 1.84 -> 0.01 plunges from step 52``."""
    from klinic.facts import Facts
    from klinic.text import figure

    facts = Facts(answer.run)
    told = []
    for role in roles or one.tells:
        shape = facts.shape(role)
        if shape is not None:
            at = shape.onset if shape.changed and dated else None
            told.append(
                f"{words.metric_title(role, lang)} {figure(shape.before)} -> {figure(shape.after)} "
                f"{words.shaped(shape.word, at.step if at else None, lang)}"
            )
    return "; ".join(told) if lang == "en" else "；".join(told)
