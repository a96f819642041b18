"""A change against its control, as text, Markdown or JSON."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from klinic import __version__
from klinic.compare.bearing import about_one, role_for
from klinic.compare.effect import Effect
from klinic.compare.smoke import Smoke
from klinic.render import _words as words
from klinic.render._compare import changed_dict, settings_text
from klinic.render._layout import columns, pad, wrap
from klinic.render.as_json import encoded
from klinic.text import figure, say, say_in

COLOURS = {"better": "32", "worse": "31", "inconclusive": "33"}
_say = partial(say_in, "compare")


def render(found: Smoke, form: str, lang: str, colour: bool = False) -> str:
    """One smoke test."""
    if form == "json":
        return encoded(as_dict(found, lang))
    return _markdown(found, lang) if form == "markdown" else _text(found, lang, colour)


def as_dict(found: Smoke, lang: str) -> dict[str, Any]:
    """The verdict as JSON has it."""
    return {
        "schema_version": 1,
        "klinic_version": __version__,
        "lang": lang,
        "verdict": found.verdict,
        "reason": {"key": found.reason, "text": reason(found, lang)},
        "failure": found.failure,
        "steps": {
            "first": found.first,
            "last": found.last,
            "count": found.last - found.first + 1,
            "asked": found.asked,
        },
        "control": found.mode,
        "resamples": {"control": found.resamples[0], "new": found.resamples[1]},
        "changed": changed_dict(found.changed),
        "one_knob": found.one_knob,
        "mover": _mover(found),
        "broke": [_effect(e) for e in found.broke],
        "lost": [{"metric": name, "step": step} for name, step in found.lost.items()],
        "notes": [_say(n.sentence, lang, **n.values) for n in found.notes],
        "limit": limit(found, lang),
    }


def _mover(found: Smoke) -> dict[str, Any] | None:
    if found.toward is None:
        return None
    body = {
        "metric": found.toward.metric,
        "better": "lower" if found.toward.worse > 0 else "higher",
        "because": found.toward.because,
        "old_change": found.old_change,
    }
    return body | (_effect(found.mover) if found.mover is not None else {})


def _effect(e: Effect) -> dict[str, Any]:
    return {
        "metric": e.metric,
        "unit": e.unit,
        "before": e.before,
        "control": e.control,
        "new": e.new,
        "control_change": e.control_change,
        "new_change": e.new_change,
        "difference": e.difference,
        "z": e.z,
        "points": e.points,
    }


def reason(found: Smoke, lang: str) -> str:
    """Why this verdict, as a sentence."""
    metric = words.metric_title(found.toward.metric, lang) if found.toward else ""
    return _say(f"smoke.reason.{found.reason}", lang, metric=metric)


def limit(found: Smoke, lang: str) -> str:
    """What so few steps cannot prove."""
    return _say("smoke.limit", lang, steps=found.last - found.first + 1)


def _window(found: Smoke, lang: str) -> str:
    key = "smoke.window" if found.failure else "smoke.window_none"
    return _say(key, lang, failure=found.failure, first=found.first, last=found.last)


def _judged_by(found: Smoke, lang: str) -> str | None:
    toward = found.toward
    if toward is None or found.reason in ("past", "not-past"):
        return None
    if about_one(role_for(toward.metric)) and toward.worse > 0:
        way = "nearer"
    else:
        way = "lower" if toward.worse > 0 else "higher"
    return _say(
        f"smoke.judged_{toward.because}",
        lang,
        metric=words.metric_title(toward.metric, lang),
        way=_say(f"smoke.{way}", lang),
    )


def _rows(found: Smoke, lang: str) -> list[tuple[str, ...]]:
    e = found.mover
    if e is None or found.reason in ("past", "not-past"):
        return []
    control = "control" if found.mode == "control" else "control_old"
    head = ("", *(_say(f"smoke.{key}", lang) for key in ("before", "after", "change", "runs")))
    arms = (
        (control, e.control, e.control_change, found.resamples[0]),
        ("new", e.new, e.new_change, found.resamples[1]),
    )
    return [
        head,
        *(
            (
                _say(f"smoke.{key}", lang),
                figure(e.before),
                figure(level),
                _change(e, level, change, lang),
                str(n),
            )
            for key, level, change, n in arms
        ),
    ]  # fmt: skip


def _change(e: Effect, level: float, change: float, lang: str) -> str:
    """A change as it is measured: a factor for quotients, a signed difference otherwise."""
    role = role_for(e.metric)
    if role.scale == "log":
        if min(e.before, e.control, e.new) > role.floor:
            return _say("smoke.factor", lang, value=figure(float(f"{math.exp(change):.3g}")))
        return f"{level - e.before:+.3g}"  # no factor of what was nearly 0
    return f"{change:+.3g}"


def _apart(found: Smoke, lang: str) -> str | None:
    e, toward = found.mover, found.toward
    if e is None or toward is None or not e.difference or not math.isfinite(e.z):
        return None
    good = -toward.worse * e.difference > 0
    return _say(
        "smoke.apart",
        lang,
        z=f"{abs(e.z):.1f}",
        way=_say("smoke.toward" if good else "smoke.away", lang),
    )


def _others(found: Smoke, lang: str) -> list[str]:
    if found.reason == "not-arrived":
        return []
    lines = [
        _say(
            "smoke.broke",
            lang,
            metric=words.metric_title(e.metric, lang),
            control=figure(e.control),
            new=figure(e.new),
        )
        for e in found.broke
    ]
    lines += [_say("smoke.lost", lang, metric=m, step=step) for m, step in found.lost.items()]
    return lines or [_say("smoke.unbroken", lang)]


def _text(found: Smoke, lang: str, colour: bool) -> str:
    verdict = _say(f"smoke.{found.verdict}", lang)
    shown = f"\x1b[1;{COLOURS[found.verdict]}m{verdict}\x1b[0m" if colour else verdict
    right = _window(found, lang)
    lines = [shown + " " * max(2, 80 - columns(verdict) - columns(right)) + right]
    lines.append(wrap(reason(found, lang), "  ", "    "))
    lines.append("")
    rows = _rows(found, lang)
    if rows:
        widths = [max(columns(row[i]) for row in rows) for i in range(5)]
        lines += [
            ("  " + "  ".join(pad(cell, w) for cell, w in zip(row, widths, strict=True))).rstrip()
            for row in rows
        ]
    lines += [
        wrap(line, "  ", "    ")
        for line in (_judged_by(found, lang), _apart(found, lang), *_others(found, lang))
        if line
    ]
    lines.append("")
    told = settings_text(found.changed, "smoke", lang)
    lines += [wrap(told[0], "  ", "    "), *(wrap(each, "    ", "      ") for each in told[1:])]
    # What the settings line says already is not said again.
    for n in found.notes:
        if n.sentence.endswith((".short", ".one", ".none")):
            note = say("text.mind", lang, text=_say(n.sentence, lang, **n.values))
            lines.append(wrap(note, "  ", "    "))
    lines += [
        wrap(limit(found, lang), "  ", "    "),
        wrap(_say(f"smoke.hint.{found.verdict}", lang), "", "  "),
    ]
    return "\n".join(lines) + "\n"


def _markdown(found: Smoke, lang: str) -> str:
    lines = [f"## {_say(f'smoke.{found.verdict}', lang)}: {_window(found, lang)}", ""]
    lines += [reason(found, lang), ""]
    rows = _rows(found, lang)
    if rows:
        lines += [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(-2, "|---|---|---|---|---|")
        lines.append("")
    extra = [_judged_by(found, lang), _apart(found, lang), *_others(found, lang)]
    lines += [f"- {line}" for line in extra if line]
    told = settings_text(found.changed, "smoke", lang)
    lines += [f"- {told[0]}", *(f"  - {each}" for each in told[1:])]
    lines += [f"- {_say(n.sentence, lang, **n.values)}" for n in found.notes]
    return "\n".join([*lines, "", limit(found, lang)]) + "\n"
