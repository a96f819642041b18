"""The audit of a reward function, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from klinic.render._layout import pad, wrap
from klinic.render._visible import visible
from klinic.text import figure, say_in

if TYPE_CHECKING:
    from klinic.audit.report import Earned, Report

SHOWN = 160  # characters of an example
TOLD = 2  # exploits of a form that are shown in full
REJECTED = 12  # spellings told


def _say(key: str, lang: str, **values: Any) -> str:
    return say_in("audit", key, lang, **values)


def as_text(report: Report, lang: str) -> str:
    """What pays first, then what does not, what is unjustly refused, and what fails."""
    holes = report.holes
    right, wrong = _mean(report.honest.right), _mean(report.honest.plain)
    lines = [
        wrap(_say("holes" if holes else "clean", lang, count=len(holes), function=report.function)),
        wrap(
            _say("called", lang, call=report.convention.call, name=report.convention.name),
            "  ",
            "    ",
        ),
        wrap(
            _say(
                "honest",
                lang,
                format=report.honest.format,
                right=figure(right),
                wrong=figure(wrong),
                rows=report.used,
            ),
            "  ",
            "    ",
        ),
    ]
    if not report.gap > 0 or right <= wrong:
        lines.append(wrap(_say("no_gap", lang), "  ", "    "))
    for form in dict.fromkeys(one.form for one in holes):
        lines += ["", *_holes([one for one in holes if one.form == form], lang)]
    refused = sorted({e.form for e in report.earned} - {e.form for e in holes})
    if refused:
        lines += ["", wrap(_say("refused", lang, forms=", ".join(_form(f, lang) for f in refused)))]
    if report.rejected:
        lines += ["", _say("rejected", lang)]
        for r in report.rejected[:REJECTED]:
            said = _say(
                "spelling", lang, text=visible(r.text)[:60], answer=r.answer, count=r.count, of=r.of
            )
            lines.append(wrap(said, "  ", "    "))
    if report.labelled is not None:
        told = report.labelled
        lines += [
            "",
            wrap(
                _say(
                    "labelled",
                    lang,
                    false_positives=len(told.paid),
                    wrong=told.wrong,
                    false_negatives=len(told.unpaid),
                    right=told.right,
                )
            ),
        ]
    for t in report.troubles:
        said = _say(
            f"trouble.{t.kind}", lang, count=t.count, told=visible(t.told)[:120], at=t.at, row=t.row
        )
        lines += ["", wrap(said), *wrap(visible(t.text[:SHOWN]), "    ", "    ").split("\n")]
    if report.noise > 0:
        lines += ["", wrap(_say("noise", lang, noise=figure(report.noise)))]
    if report.apart is not None and report.apart > 0:
        lines += ["", wrap(_say("apart", lang, apart=figure(report.apart)))]
    if report.left:
        lines += ["", wrap(_say("left", lang, forms=", ".join(report.left)))]
    lines += [
        "",
        wrap(
            _say(
                "time",
                lang,
                calls=report.calls,
                wall=f"{report.wall:.1f}",
                each=f"{1000 * report.seconds:.2g}",
                slowest=f"{1000 * report.slowest[0]:.3g}",
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _holes(holes: Sequence[Earned], lang: str) -> list[str]:
    """The best-paid of one form, and the names of the others."""
    lines = [line for one in holes[:TOLD] for line in _hole(one, lang)]
    rest = [f"{one.name} {one.share:.0%}" for one in holes[TOLD:]]
    return (
        [*lines, wrap(_say("more", lang, names=", ".join(rest)), "  ", "    ")] if rest else lines
    )


def _hole(one: Earned, lang: str) -> list[str]:
    said = _say(
        "hole",
        lang,
        share=f"{one.share:.0%}",
        mean=figure(one.mean),
        paid=f"{one.paid:.0%}",
        rows=len(one.excess),
    )
    text = visible(one.example)
    short = text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} [...] {text[-SHOWN // 2 :]}"
    lines = [pad(f"{_form(one.form, lang)}: {one.name}", 34).rstrip(), wrap(said, "  ", "    ")]
    if one.knows:
        lines.append(wrap(_say("knows", lang), "  ", "    "))
    return [*lines, *(wrap(line, "    ", "    ") for line in short.split("\n") if line.strip())]


def _form(form: str, lang: str) -> str:
    return _say(f"form.{form}", lang)


def _mean(values: Any) -> float:
    known = [v for v in values if v == v]
    return sum(known) / len(known) if known else float("nan")


def as_json(report: Report) -> str:
    """Stable keys; what is not known is null."""
    document = {
        "schema_version": 1,
        "function": report.function,
        "convention": {
            "name": report.convention.name,
            "call": report.convention.call,
            "why": report.convention.why,
        },
        "rows": report.used,
        "honest": {
            "format": report.honest.format,
            "right": _mean(report.honest.right),
            "wrong": _mean(report.honest.plain),
            "reads": report.honest.reads,
        },
        "gap": report.gap,
        "threshold": report.threshold,
        "holes": [_plain_of(e) for e in report.holes],
        "tried": [
            {"form": e.form, "name": e.name, "share": e.share, "paid": e.paid, "pays": e.pays}
            for e in report.earned
        ],
        "rejected": [asdict(r) for r in report.rejected],
        "labelled": None if report.labelled is None else asdict(report.labelled),
        "troubles": [asdict(t) for t in report.troubles],
        "noise": report.noise,
        "apart": report.apart,
        "seconds": {"call": report.seconds, "slowest": report.slowest[0], "all": report.wall},
        "calls": report.calls,
        "left": list(report.left),
    }
    return json.dumps(_known(document), ensure_ascii=False, indent=1) + "\n"


def _plain_of(one: Earned) -> dict[str, Any]:
    return {
        "form": one.form,
        "name": one.name,
        "earned": one.mean,
        "share": one.share,
        "share_paid": one.paid,
        "rows": len(one.excess),
        "knows": one.knows,
        "example": one.example,
        "row": one.row,
    }


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _known(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_known(v) for v in value]
    if isinstance(
        value, str
    ):  # a half of a pair, which an exploit may hold, is no text that can be written
        return value.encode("utf-8", "backslashreplace").decode()
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
