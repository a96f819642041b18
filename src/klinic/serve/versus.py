"""Two runs set side by side, as plain data for the page; it is worked out by the background process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from klinic.run import Run
from klinic.serve.examine import one
from klinic.serve.plots import Line, plot
from klinic.text import figure

Given = tuple[str, Sequence[tuple[str, str]], bool]


def versus(a: Given, a_id: str, b: Given, b_id: str, lang: str) -> dict[str, Any] | None:
    """Sentences, settings and overlaid curves of two runs; None where one is gone. Raises KlinicError where one cannot be read."""
    from klinic.compare.two_runs import compare
    from klinic.render import _compare as said
    from klinic.render import _words as words

    runs = (one(a, a_id), one(b, b_id))
    if runs[0] is None or runs[1] is None:
        return None
    found = compare(runs[0], runs[1])
    changed = said.changed_dict(found.changed)
    return {
        "steps": said.common_steps(found, lang),
        "settings": said.settings_text(found.changed, "compare", lang)[0],
        "changed": [
            {"name": c["flag"], "a": said.value(c["a"], lang), "b": said.value(c["b"], lang)}
            for c in (changed or [])
        ],
        "parts": said.what_parts(found, lang),
        "partings": [
            {
                **asdict(p),
                "title": words.metric_title(p.metric, lang),
                "a": figure(p.a),
                "b": figure(p.b),
                "since": said.since(p, found, lang),
            }
            for p in found.partings
        ],
        "notes": said.notes(found, lang),
        "diagnoses": [said.diagnosis(found.a, lang), said.diagnosis(found.b, lang)],
        "plots": _plots(found, runs[0], runs[1], lang),
    }


def _plots(found: Any, a: Run, b: Run, lang: str) -> list[dict[str, Any]]:
    """The vital curves and all that part, both runs in one box."""
    from klinic.render import _words as words
    from klinic.vitals import ROLES, VITALS, players

    partings = {p.metric: p for p in found.partings}
    roles = [*VITALS, *(role for role in partings if role not in VITALS and role in ROLES)]
    made = []
    for role in roles:
        lines = []
        for label, run in (("A", a), ("B", b)):
            names = players(role, run.curves)
            if names:
                curve = run.curves[names[0]]
                lines.append(Line(label, curve.steps.tolist(), curve.values.tolist()))
        p = partings.get(role)
        drawn = plot(lines, (p.low, p.high) if p else None, p.step if p else None)
        if drawn is not None:
            made.append(
                {"title": words.metric_title(role, lang), "unit": ROLES[role].unit, "plot": drawn}
            )
    return made
