"""Two runs side by side, as text, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from klinic import __version__
from klinic.compare.parting import Parting
from klinic.compare.settings import Changed
from klinic.compare.two_runs import Comparison
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage, did_you_mean
from klinic.render import _words as words
from klinic.render._layout import columns, pad, wrap
from klinic.render.as_json import encoded
from klinic.run import Metric
from klinic.text import figure, say, say_in

FORMATS = ("text", "json", "markdown")
NAME = 32  # columns of a metric's name in the table
_say = partial(say_in, "compare")


def render(found: Comparison, form: str, lang: str) -> str:
    """One comparison. Raises BadUsage for an unknown format."""
    if form == "json":
        return encoded(as_dict(found, lang))
    return _markdown(found, lang) if form == "markdown" else _text(found, lang)


def known_format(form: str) -> None:
    """Raise BadUsage for a format that does not exist."""
    if form not in FORMATS:
        raise BadUsage(
            f"unknown format {form!r}",
            "--format",
            did_you_mean(form, FORMATS) or f"known: {', '.join(FORMATS)}",
        )


def settings_text(changed: Sequence[Changed] | None, key: str, lang: str) -> list[str]:
    """What was set differently: one line, or a head and a line each. key: "compare" or "smoke"."""
    if changed is None:
        return [_say(f"{key}.unstated", lang)]
    if not changed:
        return [_say(f"{key}.equal", lang)]
    each = [
        _say(f"{key}.setting", lang, name=c.name, a=value(c.a, lang), b=value(c.b, lang))
        for c in changed
    ]
    if len(each) == 1:
        return [_say(f"{key}.one", lang, what=each[0])]
    return [_say(f"{key}.several", lang, n=len(each)), *each]


def value(found: Any, lang: str) -> str:
    """A setting's value, or that none is stated."""
    return _say("compare.none", lang) if found is None else figure(found)


def changed_dict(changed: Sequence[Changed] | None) -> list[dict[str, Any]] | None:
    """The settings that differ, as JSON has them."""
    if changed is None:
        return None
    return [{"knob": c.knob, "flag": c.name, "a": c.a, "b": c.b} for c in changed]


def as_dict(found: Comparison, lang: str) -> dict[str, Any]:
    """The comparison as JSON has it."""
    return {
        "schema_version": 1,
        "klinic_version": __version__,
        "lang": lang,
        "a": _run_dict(found.a),
        "b": _run_dict(found.b),
        "steps": {"first": found.first, "last": found.last, "common": found.common},
        "changed": changed_dict(found.changed),
        "attributable": None if found.changed is None else len(found.changed) == 1,
        "identical": found.identical,
        "same_until": found.same_until,
        "first": found.partings[0].metric if found.partings else None,
        "parted": [
            {
                "metric": p.metric,
                "step": p.step,
                "low": p.low,
                "high": p.high,
                "a": p.a,
                "b": p.b,
                "difference": p.size,
                "z": p.z,
            }
            for p in found.partings
        ],
        "together": list(found.together),
        "too_short": list(found.short),
        "not_compared": [
            {"metric": u.role, "a": _metric_dict(u.a), "b": _metric_dict(u.b)} for u in found.unlike
        ],
    }


def _run_dict(answer: Diagnosis) -> dict[str, Any]:
    main = answer.main
    onset = main.onset if main else None
    return {
        "name": answer.run.name,
        "trainer": answer.run.trainer.name,
        "status": answer.status,
        "failure": main.failure if main else None,
        "severity": main.severity if main else None,
        "confidence": main.confidence if main else None,
        "onset": {"step": onset.step, "low": onset.low, "high": onset.high} if onset else None,
    }


def _metric_dict(metric: Metric) -> dict[str, Any]:
    return {
        "name": metric.name,
        "definition": metric.definition,
        "unit": metric.unit,
        "source_key": metric.source_key,
    }


def _names(found: Comparison) -> tuple[str, str]:
    """Both names, told apart by their folder where they are the same."""
    one, other = found.a.run, found.b.run
    if one.name != other.name:
        return one.name, other.name
    from pathlib import Path

    parents = [Path(run.path).resolve().parent.parent.name for run in (one, other)]
    if parents[0] != parents[1]:
        return f"{parents[0]}/{one.name}", f"{parents[1]}/{other.name}"
    return f"{one.name} (A)", f"{other.name} (B)"


def common_steps(found: Comparison, lang: str) -> str:
    """Which steps both runs have."""
    if not found.common:
        return _say("compare.no_steps", lang)
    return _say("compare.steps", lang, n=found.common, first=found.first, last=found.last)


def since(p: Parting, found: Comparison, lang: str) -> str:
    """From which step two curves part."""
    if p.step == found.first:
        return _say("compare.start", lang)
    if p.low == p.high == p.step:
        return say("text.from_step", lang, step=p.step)
    return say("text.since", lang, step=p.step, low=p.low, high=p.high)


def diagnosis(answer: Diagnosis, lang: str) -> str:
    """One line: the failure, since when, how bad and how sure; or that it is well."""
    main = answer.main
    if main is None:
        return say(f"status.{answer.status}", lang)
    parts = [
        main.failure,
        words.since(main, lang),
        say(f"severity.{main.severity}", lang),
        say(f"confidence.{main.confidence}", lang),
    ]
    return ("，" if lang == "zh" else ", ").join(part for part in parts if part)


def _listed(names: Sequence[str], lang: str) -> str:
    return ("、" if lang == "zh" else ", ").join(words.metric_title(name, lang) for name in names)


def what_parts(found: Comparison, lang: str) -> list[str]:
    """Up to where the runs are the same, and which curve parts first."""
    lines = []
    if found.identical:
        lines.append(_say("compare.identical", lang))
    elif found.same_until is not None and found.same_until != found.first:
        lines.append(_say("compare.same_until", lang, step=found.same_until))
    if found.partings:
        first = found.partings[0]
        lines.append(
            _say(
                "compare.parts",
                lang,
                metric=words.metric_title(first.metric, lang),
                since=since(first, found, lang),
            )
        )
    elif not found.identical and found.common:
        lines.append(_say("compare.nothing", lang))
    return lines


def notes(found: Comparison, lang: str) -> list[str]:
    """What does not part, and what could not be compared."""
    lines = []
    if found.together:
        lines.append(_say("compare.together", lang, list=_listed(found.together, lang)))
    if found.short:
        lines.append(_say("compare.short", lang, list=_listed(found.short, lang)))
    for u in found.unlike:
        lines.append(
            _say(
                "compare.unlike",
                lang,
                role=words.metric_title(u.role, lang),
                a=f"{u.a.source_key} ({u.a.name})",
                b=f"{u.b.source_key} ({u.b.name})",
            )
        )
    if found.partings:
        lines.append(say("text.mind", lang, text=_say("compare.one_seed", lang)))
    return lines


def _text(found: Comparison, lang: str) -> str:
    names = _names(found)
    lines = [_say("compare.head", lang, a=names[0], b=names[1]), f"  {common_steps(found, lang)}"]
    told = settings_text(found.changed, "compare", lang)
    lines += ["", wrap(told[0], "  ", "    "), *(wrap(each, "    ", "      ") for each in told[1:])]
    lines += [wrap(line, "  ", "    ") for line in what_parts(found, lang)]
    if found.partings:
        lines += ["", *_table(found, names, lang)]
    lines += ["", *(wrap(line, "  ", "    ") for line in notes(found, lang))]
    widest = max(map(columns, names))
    lines += [
        "",
        *(
            wrap(f"{pad(name, widest)}  {diagnosis(answer, lang)}", "  ", "    ")
            for name, answer in zip(names, (found.a, found.b), strict=True)
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _table(found: Comparison, names: Sequence[str], lang: str) -> list[str]:
    rows = [("", _say("compare.a", lang), _say("compare.b", lang), "")]
    rows += [
        (
            words.metric_title(p.metric, lang),
            figure(p.a),
            figure(p.b),
            since(p, found, lang),
        )
        for p in found.partings
    ]
    # A long name has a line of its own, so that the figures stay below each other within 80 columns.
    rows = [
        part
        for row in rows
        for part in ([row] if columns(row[0]) <= NAME else [(row[0], "", "", ""), ("", *row[1:])])
    ]
    short = [row for row in rows if columns(row[0]) <= NAME]
    widths = [max(columns(row[i]) for row in short) for i in range(3)]
    return [
        ("  " + "  ".join([*(pad(row[i], widths[i]) for i in range(3)), row[3]])).rstrip()
        for row in rows
    ]


def _markdown(found: Comparison, lang: str) -> str:
    names = _names(found)
    lines = [
        f"## {_say('compare.head', lang, a=names[0], b=names[1])}", "", common_steps(found, lang), "",
    ]  # fmt: skip
    told = settings_text(found.changed, "compare", lang)
    lines += [told[0], *(f"- {each}" for each in told[1:]), ""]
    lines += what_parts(found, lang)
    if found.partings:
        lines += ["", f"| {_say('compare.metric', lang)} | {names[0]} | {names[1]} | {_say('compare.where', lang)} | z |",
                  "|---|---|---|---|---|"]  # fmt: skip
        lines += [
            f"| {words.metric_title(p.metric, lang)} | {figure(p.a)} | {figure(p.b)} | {since(p, found, lang)} | {figure(round(p.z, 1))} |"
            for p in found.partings
        ]
    lines += ["", *(f"- {line}" for line in notes(found, lang)), ""]
    lines += [
        f"- {name}: {diagnosis(answer, lang)}"
        for name, answer in zip(names, (found.a, found.b), strict=True)
    ]
    return "\n".join(lines).rstrip() + "\n"
