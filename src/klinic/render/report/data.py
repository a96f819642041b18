"""A diagnosis as the one document that the report's page shows. Every sentence stands in it in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from klinic import __version__
from klinic.diagnosis import Action, Diagnosis, Finding, Missing
from klinic.failures import Evidence, cards
from klinic.render import _words as words
from klinic.render._visible import visible_all
from klinic.render.as_json import how
from klinic.render.report.encode import FULL, SHORT, Encoder
from klinic.render.report.panels import clocks, panels, parts, played
from klinic.text import LANGUAGES, page, say, sentences
from klinic.text import in_every_language as both
from klinic.vitals import ROLES, role_of

DOCUMENT_VERSION = 1
Both = str | dict[str, str]
Sample = Mapping[str, Any]


def report_data(answer: Diagnosis, samples: Sequence[Sample] = ()) -> dict[str, Any]:
    """Plain data for ``klinicReport.update``: strings, numbers, lists and dicts; no NaN outside the encoded curves.

    samples: ``{"step", "prompt", "completion", "reward", "why"}`` each, shown only where given. A text is a string or
    ``{"en": ..., "zh": ...}``. Curves are ``klinic.render.report.encode``'s.
    """
    run, main = answer.run, answer.main
    own, encoder = played(run), Encoder()
    curves = {
        name: {
            **encoder.curve(curve, FULL if name in own else SHORT),
            "unit": curve.metric.unit,
            "key": curve.metric.source_key,
            "definition": curve.metric.definition,
            "title": _title(name),
        }
        for name, curve in run.curves.items()
        if len(curve.values)
    }
    return {
        "version": DOCUMENT_VERSION,
        "klinic": __version__,
        "words": {lang: sentences("render/report", lang) for lang in LANGUAGES},
        "run": visible_all(
            {
                "name": run.name,
                "trainer": run.trainer.title,
                "first": run.first,
                "last": run.last,
                "logged": run.logged,
                "sources": list(run.sources),
                "unread": list(run.unread_keys),
            }
        ),
        "status": answer.status,
        "statusText": both(lambda lang: say(f"status.{answer.status}", lang)),
        "failure": main.failure if main else None,
        "severity": main.severity if main else None,
        "onset": _onset(main),
        "answers": _answers(answer),
        "findings": [_finding(f, f is main) for f in answer.findings],
        "stages": both(lambda lang: words.stages(answer, lang)) if run.curves else "",
        "notes": [{"metric": n.metric, "text": _note(n)} for n in answer.notes],
        "panels": panels(answer),
        "grids": encoder.grids,
        "curves": curves,
        "clocks": clocks(run, encoder),
        "parts": parts(run),
        "marks": {
            "segments": [{"first": s.first, "last": s.last} for s in run.segments],
            "checkpoints": [
                {"step": c.step, "name": c.name, "complete": not c.missing} for c in run.checkpoints
            ],
            "events": visible_all(
                [
                    {
                        "step": e.step,
                        "kind": e.kind,
                        "at": e.at,
                        "text": e.lines[-1] if e.lines else "",
                    }
                    for e in run.events
                ]
            ),
        },
        "samples": [visible_all(dict(sample)) for sample in samples],
    }


def _title(name: str) -> Both:
    role = role_of(name)
    return "" if role is None else both(lambda lang: ROLES[role].says("title", lang))


def _onset(finding: Finding | None) -> dict[str, int] | None:
    at = finding.onset if finding else None
    return None if at is None else {"step": at.step, "low": at.low, "high": at.high}


def _note(n: Any) -> Both:
    return both(lambda lang: words.note(n, lang))


def _answers(answer: Diagnosis) -> dict[str, Any]:
    main, action = answer.main, answer.first_action
    mover = answer.first_mover
    nothing = "text.nothing" if answer.status == "healthy" else "text.undecided"
    return {
        "title": both(lambda lang: words.title(main.failure, lang)) if main else "",
        "summary": both(
            lambda lang: page(main.failure, lang).summary if main else say(nothing, lang)
        ),
        "severity": both(lambda lang: say(f"severity.{main.severity}", lang)) if main else "",
        "confidence": both(lambda lang: say(f"confidence.{main.confidence}", lang)) if main else "",
        "hitRate": both(lambda lang: words.hit_rate(main, lang)) if main else "",
        "since": both(lambda lang: words.since(main, lang)) if main else "",
        "mover": both(lambda lang: words.metric_title(mover, lang)) if mover else "",
        "change": _action(action, main),
        "then": [_action(a, main) for a in answer.then],
        "back": both(lambda lang: words.back(answer, lang) or "") if main else "",
        "noCheckpoint": both(lambda lang: say("text.no_checkpoint", lang))
        if main and answer.roll_back_to is None and not answer.run.checkpoints
        else "",
        "smoke": both(lambda lang: words.smoke(answer, lang)),
    }


def _action(action: Action | None, main: Finding | None) -> dict[str, Any] | None:
    if action is None:
        return None
    return {
        "command": action.command,
        "text": both(lambda lang: words.short(action, lang)),
        "why": both(lambda lang: say(action.why, lang)),
        "old": None if action.old is None else str(action.old),
        "restart": both(lambda lang: say(f"text.restart_{action.restart}", lang)),
    }


def _finding(f: Finding, first: bool) -> dict[str, Any]:
    unchecked = f.status == "not_checked"
    return {
        "failure": f.failure,
        "title": both(lambda lang: words.title(f.failure, lang)),
        "status": f.status,
        "main": first,
        "severity": f.severity,
        "stage": both(lambda lang: say(f"stage.{cards()[f.failure].stage}", lang))
        if cards()[f.failure].stage != "benign"
        else "",
        "since": both(lambda lang: words.since(f, lang)),
        "because": f.because_of,
        "evidence": [_evidence(f, e) for e in f.evidence],
        "missing": [_missing(m) for m in f.missing] if unchecked else [],
        "crashed": f.crashed,
    }


def _evidence(f: Finding, e: Evidence) -> dict[str, Any]:
    return {
        "metric": e.metric,
        "title": both(lambda lang: words.curve_title(e, lang)),
        "says": e.says,
        "levels": words.levels(e),
        "shape": both(lambda lang: words.shape(e, lang)),
        "text": both(lambda lang: words.text_of(f, e, lang)),
    }


def _missing(m: Missing) -> dict[str, Any]:
    return {"metric": m.metric, "how": both(lambda lang: how(m, lang))}
