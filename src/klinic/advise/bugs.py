"""Numbers that a trainer, or some of its versions, logs wrongly or under a misleading name: said, never a finding."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from klinic.diagnosis import Note
from klinic.run import Run
from klinic.text import LANGUAGES, say_in
from klinic.trainers import Bug, tables
from klinic.vitals import fits, role_of

OWN = "unread:"  # before a key in a table: only where no table knows it, so that it is the author's own


@dataclass(frozen=True, slots=True)
class Known:
    """One bug as it concerns a run. sure: the log states the version, or shows the bug's own marks; key: as logged."""

    bug: Bug
    key: str
    sure: bool

    @property
    def dated(self) -> bool:
        """Whether it is one of some versions only."""
        return bool(self.bug.since or self.bug.until)

    def text(self, run: Run, lang: str) -> str:
        """One sentence: which versions, which number, and what klinic does about it."""
        return say_in(
            "advise",
            f"bug.{'here' if self.sure else 'perhaps' if self.dated else 'depends'}",
            lang,
            trainer=run.trainer.title,
            versions=versions(self.bug, lang),
            logged=self.key,
            what=self.bug.zh if lang == "zh" else self.bug.en,
            effect=say_in("advise", f"bug.{self.bug.effect}", lang),
        )


def versions(bug: Bug, lang: str) -> str:
    """``0.7 to 0.8``, ``0.9 on``, ``to 0.26``; "" for all of them."""
    which = ("since" if bug.since else "") + ("until" if bug.until else "")
    if not which:
        return ""
    if bug.since == bug.until:
        return f" {bug.since}"
    return say_in("advise", f"bug.{which}", lang, since=bug.since, until=bug.until)


def known_bugs(run: Run) -> list[Known]:
    """The bugs of the run's trainer that concern a number it logs; those of other versions are left out."""
    unread = {f"{OWN}{key}" for key in run.unread_keys}
    logged = {curve.metric.source_key for curve in run.curves.values()} | unread
    table = tables()[run.trainer.name]
    found = []
    for bug in table.bugs:
        keys = sorted(key for key in logged if any(fits(one, key) for one in bug.key.split()))
        if not keys:
            continue
        sure = _concerns(bug, run, table.bare(logged))
        if sure is not None:
            found.append(Known(bug, keys[0].removeprefix(OWN), sure))
    return found


def notes(run: Run, roles: Collection[str]) -> list[Note]:
    """Bugs of the numbers that a diagnosis rests on. roles: those."""
    by_key = {curve.metric.source_key: name for name, curve in run.curves.items()}
    found = []
    for known in known_bugs(run):
        role = role_of(by_key.get(known.key, ""))
        if (
            role in roles and known.bug.effect != "left-out"
        ):  # what was left out is a note of its own
            found.append(
                Note(role, "note.bug", {lang: known.text(run, lang) for lang in LANGUAGES})
            )
    return found


def _concerns(bug: Bug, run: Run, logged: set[str]) -> bool | None:
    """True: it does. False: perhaps. None: it does not."""
    if any(key in logged for key in bug.without):
        return None
    for knob, values in bug.knobs.items():
        stated = run.setting(knob)
        if stated is not None and str(stated).lower() not in {str(v).lower() for v in values}:
            return None
    marked = any(key in logged for key in bug.keys)
    if run.trainer.version:
        return True if marked or _between(run.trainer.version, bug) else None
    if bug.keys:
        return True if marked else False if bug.since or bug.until else None
    stated_all = all(run.setting(knob) is not None for knob in bug.knobs)
    return not (bug.since or bug.until) and stated_all


def _between(version: str, bug: Bug) -> bool:
    mine = _numbers(version)
    first, last = _numbers(bug.since), _numbers(bug.until)
    return (not first or mine[: len(first)] >= first) and (not last or mine[: len(last)] <= last)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
