"""Run every failure, put causes before consequences, keep what is ruled out and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from klinic.curves.plane import overspent
from klinic.diagnosis import STATUSES, Diagnosis, Finding, Missing, Note
from klinic.errors import BadUsage, did_you_mean
from klinic.facts import FEW, SOME, Facts, NotLogged
from klinic.failures import SEVERITIES, STAGES, Card, Verdict, cards
from klinic.read import read_all
from klinic.rollouts import UNREAD, beside
from klinic.run import Run
from klinic.text import LANGUAGES, say_in
from klinic.thresholds import Chosen, chosen_cards
from klinic.vitals import VITALS, role_of

ENOUGH = 8  # logged points below which "healthy" is not a result
THIN = 4  # vital curves below which "nothing is wrong" says little
PUSHES = ("reward-pays", "part-rises", "bonus")  # sentences that name what drives a failure
LATE = 0.08  # share of the run by which a consequence may seem to come before its cause
LOW_GROUPS = (
    0.35,
    0.75,
)  # zero-variance share worth a note (seed 003's bands as shares, science.md D1)


def diagnose(
    path: str | Path | Run,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    thresholds: Chosen | None = None,
    **options: Any,
) -> Diagnosis:
    """Diagnose one run. Raises UnreadableInput, or BadUsage for an unknown slug.

    thresholds: other numbers for some failures, ``{"kl-runaway": {"surge": 8}}``.
    """
    if isinstance(path, Run):
        return judge(path, only, skip, thresholds)
    from klinic.read import read

    return judge(beside([read(path, **options)], path)[0], only, skip, thresholds)


def diagnose_all(
    path: str | Path,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    thresholds: Chosen | None = None,
    **options: Any,
) -> list[Diagnosis]:
    """Diagnose every run under a path, worst first."""
    runs = beside(read_all(path, **options), path)
    return worst_first(judge(run, only, skip, thresholds) for run in runs)


def worst_first(found: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Diagnoses by status, and those of one status by the severity of what was found."""
    return sorted(
        found,
        key=lambda d: (
            STATUSES.index(d.status),
            SEVERITIES.index(d.main.severity) if d.main and d.main.severity else len(SEVERITIES),
        ),
    )


def judge(
    run: Run,
    only: Collection[str] = (),
    skip: Collection[str] = (),
    thresholds: Chosen | None = None,
) -> Diagnosis:
    """The diagnosis of a run that was read."""
    from klinic.advise import advise

    chosen = _chosen(only, skip, thresholds)
    facts = Facts(run)
    findings = [_ask(card, facts, run) for card in chosen]
    findings = _causes_first(findings, run)
    status = _status(findings, facts)
    findings = [
        replace(f, missing=tuple(_lacking(facts, m.metric) for m in f.missing)) if f.missing else f
        for f in findings
    ]
    answer = Diagnosis(run, status, tuple(findings), notes=_notes(facts, findings))
    main = answer.main
    if main is not None:
        mover = _first_mover(main)
        answer = replace(answer, first_mover=mover)
    return advise(answer, facts)


def _chosen(only: Collection[str], skip: Collection[str], thresholds: Chosen | None) -> list[Card]:
    known = chosen_cards(thresholds)
    for slug in [*only, *skip]:
        if slug not in known:
            raise BadUsage(
                f"unknown failure {slug!r}",
                "--only/--skip",
                did_you_mean(slug, known) or "klinic explain lists them",
            )
    return [card for slug, card in known.items() if (not only or slug in only) and slug not in skip]


def _ask(card: Card, facts: Facts, run: Run) -> Finding:
    try:
        verdict = card.judge(facts)
    except NotLogged as missing:
        return Finding(
            card.slug, "not_checked", missing=tuple(Missing(role) for role in missing.roles)
        )
    except Exception as trouble:  # a check that crashes is a finding, and the others still run
        return Finding(card.slug, "not_checked", crashed=f"{type(trouble).__name__}: {trouble}")
    return Finding(
        card.slug,
        verdict.status,
        verdict.severity,
        _confidence(verdict, facts) if verdict.status in ("present", "benign") else None,
        verdict.onset,
        None,
        verdict.slice,
        verdict.side,
        verdict.evidence,
    )


def _confidence(verdict: Verdict, facts: Facts) -> str:
    """certain: two supports beside the need; short logs stay possible unless the change is unmistakable."""
    supports = sum(e.says == "for" for e in verdict.evidence) - 1
    if facts.n <= FEW:
        return "likely" if verdict.sure else "possible"
    if facts.n < SOME and not verdict.sure:
        return "possible"
    if supports >= 2 or (verdict.sure and supports >= 1):
        return "certain"
    return "likely" if supports >= 1 or verdict.sure else "possible"


def _causes_first(findings: list[Finding], run: Run) -> list[Finding]:
    """Order the present ones: what explains others and moved first leads, what it explains follows from it."""
    known = cards()
    present = [f for f in findings if f.status == "present"]
    slack = LATE * max(1, run.last - run.first)

    def begin(f: Finding) -> float:
        # A wide interval says that the step is hardly known: its middle counts then.
        return (
            max(float(f.onset.step), (f.onset.low + f.onset.high) / 2)
            if f.onset is not None
            else float("inf")
        )

    def pushed(a: Finding) -> bool:
        # Its evidence names what drives it: a part of the reward, a known setting.
        return any(e.sentence in PUSHES for e in a.evidence)

    def under(a: Finding) -> bool:
        # A broken implementation, a reward that pays for something else and a known setting that pushes lie under
        # whatever moved first.
        return known[a.failure].stage in ("implementation", "reward") or pushed(a)

    def explains(a: Finding, b: Finding) -> bool:
        if b.failure not in known[a.failure].explains:
            return False
        mutual = a.failure in known[b.failure].explains
        if mutual and (under(b), pushed(b)) > (under(a), pushed(a)):
            return False
        # An outcome (no group differs, the reward is gone) is never a cause.
        deeper = under(a) or known[b.failure].stage == "outcome"
        return deeper or a.onset is None or b.onset is None or begin(a) <= begin(b) + slack

    because: dict[str, str] = {}
    for b in present:
        causes = [
            a
            for a in present
            if a is not b
            and explains(a, b)
            and _weight(a)
            >= _weight(b) - 1 - (known[b.failure].stage == "outcome" and a.severity != "caution")
        ]
        # Two that explain each other: the earlier one is the cause, a tie goes by stage.
        causes = [
            a
            for a in causes
            if not (explains(b, a) and _rank(b, known, begin) < _rank(a, known, begin))
        ]
        if causes:
            because[b.failure] = min(causes, key=lambda a: _rank(a, known, begin)).failure
    if present and len(because) == len(present):  # a ring: the earliest is taken for the cause
        del because[min(present, key=lambda f: _rank(f, known, begin)).failure]
    for slug in list(because):  # point at the root
        seen = {slug}
        while because[slug] in because and because[slug] not in seen:
            seen.add(because[slug])
            because[slug] = because[because[slug]]
    roots = [f for f in present if f.failure not in because]
    roots.sort(
        key=lambda f: (
            SEVERITIES.index(f.severity or "caution"),
            known[f.failure].stage == "outcome",  # what is broken comes before what was lost by it
            *_rank(f, known, begin),
        )
    )
    follow = sorted(
        (
            replace(f, status="consequence", because_of=because[f.failure])
            for f in present
            if f.failure in because
        ),
        key=begin,
    )
    rest = [f for f in findings if f.status != "present"]
    order = {"benign": 0, "ruled_out": 1, "not_checked": 2}
    rest.sort(key=lambda f: (order[f.status], STAGES.index(known[f.failure].stage)))
    return [*roots, *follow, *rest]


def _weight(f: Finding) -> int:
    return {"stop": 3, "act": 2, "caution": 1}.get(f.severity or "caution", 0)


def _rank(f: Finding, known: dict[str, Card], begin: Any) -> tuple[float, int, str]:
    return begin(f), STAGES.index(known[f.failure].stage), f.failure


def _status(findings: list[Finding], facts: Facts) -> str:
    present = [f for f in findings if f.status in ("present", "consequence")]
    if any(f.severity in ("stop", "act") for f in present):
        return "failing"
    if present:
        return "caution"
    progress = [shape for role in ("reward", "acc") if (shape := facts.shape(role)) is not None]
    if not progress or max(shape.n for shape in progress) < ENOUGH:
        return "unclear"
    return "healthy"


def _lacking(facts: Facts, role: str) -> Missing:
    """Why a role could not be used: how to log it, or why its level says nothing where it is logged."""
    from klinic.advise import how_to_log

    metric = facts.metric(role)
    if metric is None or metric.comparable:
        return how_to_log(facts.run, role)
    return Missing(
        role,
        clause={
            lang: say_in("advise", "no-level", lang, logged=metric.source_key) for lang in LANGUAGES
        },
    )


def _first_mover(main: Finding) -> str | None:
    moved = [e for e in main.evidence if e.says == "for" and e.onset is not None]
    if not moved:
        return main.evidence[0].metric if main.evidence else None
    return min(moved, key=lambda e: e.onset or 0).metric


def _death(facts: Facts) -> list[Note]:
    """What else than memory the run died of; an error it lived through is none."""
    crash, run = facts.crash, facts.run
    if crash is None or crash.by_memory or (run.curves and crash.step != run.last):
        return []
    said = {
        "where": Path(crash.at).name,
        "text": crash.message,
        "who": ", ".join(crash.processes) or "?",
    }
    return [Note(None, f"note.crash-{crash.kind}", said)]


def _rests_on(findings: list[Finding]) -> set[str]:
    """Roles that are evidence of what is present."""
    shown = [f for f in findings if f.status in ("present", "consequence", "benign")]
    return {evidence.metric for f in shown for evidence in f.evidence}


def _notes(facts: Facts, findings: list[Finding]) -> tuple[Note, ...]:
    from klinic.advise.bugs import notes as bug_notes

    notes: list[Note] = []
    run = facts.run
    present = {f.failure for f in findings if f.status in ("present", "consequence")}
    zero, adv = facts.shape("zero_std"), facts.shape("adv_std")
    if (
        zero is not None
        and LOW_GROUPS[0] <= zero.after < LOW_GROUPS[1]
        and not present & {"too-easy", "zero-advantage", "too-hard", "entropy-collapse"}
    ):
        notes.append(
            Note(
                "adv_std" if adv is not None else "zero_std",
                "note.groups",
                {"zero": zero.after, "before": zero.before},
            )
        )
    kl, gain = facts.level("kl"), facts.level("acc")
    spent = overspent(kl, gain) if kl is not None and gain is not None else None
    if spent is not None and "nan" not in present:
        notes.append(Note("kl", "note.plane", asdict(spent)))
    notes += _death(facts)
    notes += bug_notes(run, _rests_on(findings))
    if not run.curves:
        notes.append(
            Note(
                None,
                "note.no-metrics",
                {"holds": {kind: count for kind, count in run.holds.items() if count}},
            )
        )
        if run.unread_keys:
            notes.append(Note(None, "note.unread", {"keys": ", ".join(run.unread_keys[:8])}))
    if UNREAD in run.notes:
        notes.append(
            Note(None, "note.samples", {"count": run.holds["sample files"], "run": run.path})
        )
    if "counted" in run.notes and run.curves:
        notes.append(Note(None, "note.counted", {}))
    if passed := run.holds.get("bytes passed over", 0):
        notes.append(Note(None, "note.skimmed", {"size": f"{passed / 1e9:.1f}"}))
    if torn := [event for event in run.events if event.kind == "states-disagree"]:
        notes.append(
            Note(
                None,
                "note.states",
                {"other": torn[0].at, "step": torn[0].step, "read": torn[0].lines[0]},
            )
        )
    if len(run.segments) > 1:
        notes.append(
            Note(
                None,
                "note.segments",
                {
                    "count": len(run.segments),
                    "spans": ", ".join(f"{s.first}-{s.last}" for s in run.segments[:6]),
                },
            )
        )
    logged = [role for role in VITALS if facts.shape(role) is not None]
    if run.curves and not present and len(logged) < THIN:
        key = "note.thin" if logged else "note.none"
        notes.append(Note(None, key, {"n": len(logged), "roles": ", ".join(logged)}))
    if 0 < facts.n <= FEW:
        notes.append(Note(None, "note.few", {"n": facts.n}))
    said: set[str] = set()
    for name, (en, zh) in run.absent.items():
        if en in said:
            continue
        said.add(en)
        notes.append(
            Note(
                role_of(name), "note.absent", {"en": en, "zh": zh, "metric": role_of(name) or name}
            )
        )
    return tuple(notes)
