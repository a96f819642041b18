"""The contract: one JSON object a run, ``{"runs": [...]}`` for several. Keys never change within a schema version."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from klinic import __version__
from klinic.calibration import hit_rates
from klinic.diagnosis import Action, Diagnosis, Finding, Missing
from klinic.failures import Evidence, cards
from klinic.text import say, say_of

SCHEMA_VERSION = 1


def render(diagnoses: Sequence[Diagnosis], lang: str, **options: Any) -> str:
    """Indented JSON, in English unless a language was asked for."""
    bodies = [as_dict(diagnosis, lang) for diagnosis in diagnoses]
    document = bodies[0] if len(bodies) == 1 else {"schema_version": SCHEMA_VERSION, "runs": bodies}
    return encoded(document)


def encoded(document: dict[str, Any]) -> str:
    """Indented JSON of plain data; a non-finite number becomes null."""
    return msgspec.json.format(msgspec.json.encode(_plain(document)), indent=1).decode() + "\n"


def as_dict(answer: Diagnosis, lang: str) -> dict[str, Any]:
    """The contract's object for one run."""
    run, main = answer.run, answer.main
    return {
        "schema_version": SCHEMA_VERSION,
        "klinic_version": __version__,
        "lang": lang,
        "run": {
            "name": run.name,
            "trainer": run.trainer.name,
            "steps": {"first": run.first, "last": run.last, "logged": run.logged},
            "sources": list(run.sources),
            "metrics": [
                {
                    "name": c.metric.name,
                    "source_key": c.metric.source_key,
                    "unit": c.metric.unit,
                    "definition": c.metric.definition,
                    "count": len(c.values),
                    "conversion": c.metric.conversion,
                    "derived_from": list(c.metric.derived_from) if c.metric.derived_from else None,
                }
                for c in run.curves.values()
            ],
            "unread_keys": list(run.unread_keys),
            "segments": [{"first": s.first, "last": s.last} for s in run.segments],
        },
        "status": answer.status,
        "failure": main.failure if main else None,
        "confidence": main.confidence if main else None,
        "confidence_hit_rate": _hit_rate(main),
        "severity": main.severity if main else None,
        "onset": _onset(main) if main else None,
        "first_mover": answer.first_mover,
        "restart": cards()[main.failure].restart if main else "no",
        "findings": [_finding(f, lang) for f in answer.findings],
        "first_action": _action(answer.first_action, lang),
        "then": [_action(action, lang) for action in answer.then],
        "roll_back_to": None
        if answer.roll_back_to is None
        else {
            "step": answer.roll_back_to.step,
            "checkpoint": answer.roll_back_to.name,
            "path": answer.roll_back_to.path,
            "exists": True,
            "complete": not answer.roll_back_to.missing,
        },
        "smoke": _smoke(answer, lang),
        "notes": [
            {"metric": n.metric, "text": note_text(n.sentence, n.values, lang)}
            for n in answer.notes
        ],
    }


def _hit_rate(main: Finding | None) -> dict[str, Any] | None:
    rate = hit_rates().get(main.confidence or "") if main is not None else None
    return None if rate is None else msgspec.structs.asdict(rate)


def note_text(sentence: str, values: dict[str, Any], lang: str) -> str:
    """A note as a sentence; counts of what a log holds are spelled out in the language."""
    if sentence in ("note.absent", "note.bug", "note.no-knob"):
        return str(values.get(lang, ""))
    if "holds" in values:
        kinds = [
            f"{count:,} {say(f'holds.{kind}', lang)}" for kind, count in values["holds"].items()
        ]
        values = {**values, "holds": ", ".join(kinds) or "-"}
    return say(sentence, lang, **values)


def _smoke(answer: Diagnosis, lang: str) -> dict[str, Any] | None:
    test = answer.smoke
    if test is None:
        return None
    return {
        "steps": test.steps,
        "control": say(
            "smoke.control", lang, run=answer.run.name, first=test.first, last=test.last
        ),
        "better_if": [say("smoke.better", lang, metric=test.metric)],
    }


def _onset(finding: Finding) -> dict[str, int] | None:
    return (
        None
        if finding.onset is None
        else {"step": finding.onset.step, "low": finding.onset.low, "high": finding.onset.high}
    )


def _finding(f: Finding, lang: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "failure": f.failure,
        "stage": cards()[f.failure].stage,
        "status": f.status,
        "severity": f.severity,
        "confidence": f.confidence,
        "onset": _onset(f),
        "because_of": f.because_of,
        "slice": f.slice,
        "evidence": [evidence(f.failure, e, lang) for e in f.evidence],
        "missing": [{"metric": m.metric, "how_to_log": how(m, lang)} for m in f.missing],
    }
    if f.side is not None or f.failure == "out-of-memory":
        body["side"] = f.side
    if f.crashed is not None:
        body["crashed"] = f.crashed
    return body


def how(missing: Missing, lang: str) -> str:
    """How to log a missing metric: the flag, else the clause."""
    clause = missing.clause.get(lang, "")
    return f"{missing.how}{' ' if missing.how and clause else ''}{f'({clause})' if missing.how and clause else clause}"


def evidence(slug: str, e: Evidence, lang: str) -> dict[str, Any]:
    """One line of evidence."""
    values = {"before": e.before, "after": e.after, "onset": e.onset, **e.values}
    return {
        "metric": e.metric,
        "says": e.says,
        "shape": e.word,
        "before": e.before,
        "after": e.after,
        "onset": e.onset,
        "sentence": f"{slug}.{e.sentence}",
        "values": e.values,
        "text": say_of(slug, e.sentence, lang, {k: v for k, v in values.items() if v is not None}),
    }


def _action(action: Action | None, lang: str) -> dict[str, Any] | None:
    if action is None:
        return None
    return {
        "kind": action.kind,
        "knob": action.knob,
        "flag": action.flag,
        "old": action.old,
        "new": action.new,
        "command": action.command,
        "restart": action.restart,
        "why": say(action.why, lang),
    }


def _plain(value: Any) -> Any:
    """JSON has no NaN: non-finite numbers become null."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
