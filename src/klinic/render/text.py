"""For a terminal: 80 columns, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klinic.diagnosis import Diagnosis, Finding
from klinic.failures import Evidence
from klinic.render import _signs as signs
from klinic.render import _words as words
from klinic.render._layout import WIDTH, columns, pad, wrap
from klinic.render._table import table, totals
from klinic.text import page, say

COLOURS = {
    "failing": "31",
    "caution": "33",
    "healthy": "32",
    "unclear": "36",
    "stop": "31",
    "act": "31",
}
LISTED = 3  # failures that could not be checked, unless all are asked for
# Neighbours that a normal curve rules out; these are named first (seed 003: "the normal metrics say what it is not").
NEIGHBOURS = (
    "weight-sync-failure",
    "kl-runaway",
    "entropy-collapse",
    "reward-hacking",
    "length-explosion",
    "lr-too-high",
    "too-easy",
    "no-learning",
)
AGAINST = 3


def render(diagnoses: Sequence[Diagnosis], lang: str, **options: Any) -> str:
    """One run as a block; several as a table, and as blocks too where everything is asked for."""
    if len(diagnoses) > 1 and not options.get("everything"):
        last = wrap(say("table.one", lang))
        return "\n".join([totals(diagnoses, lang), "", *table(diagnoses, lang), "", last]) + "\n"
    return "\n".join(
        _block(answer, lang, bool(options.get("colour")), bool(options.get("everything")))
        for answer in diagnoses
    )


def _block(answer: Diagnosis, lang: str, colour: bool, everything: bool) -> str:
    run, main = answer.run, answer.main
    whole = say("text.run", lang, name=run.name, trainer=run.trainer.title, steps=run.logged)
    lines = []
    if main is None:
        lines.append(
            _row([_paint(say(f"status.{answer.status}", lang), answer.status, colour)], whole)
        )
        lines.append("")
        lines.append(
            wrap(
                say("text.nothing" if answer.status == "healthy" else "text.undecided", lang),
                "  ",
                "  ",
            )
        )
        lines += _signs(answer, lang)
    else:
        head = [
            _paint(main.failure, answer.status, colour),
            words.since(main, lang),
            _paint(say(f"severity.{main.severity}", lang), main.severity or "", colour),
            say(f"confidence.{main.confidence}", lang),
        ]
        lines.append(_row([part for part in head if part], whole))
        lines.append(
            wrap(
                f"{words.title(main.failure, lang)}: {page(main.failure, lang).summary}"
                if lang == "en"
                else f"{words.title(main.failure, lang)}：{page(main.failure, lang).summary}",
                "  ",
                "  ",
            )
        )
        if rate := words.hit_rate(main, lang):
            lines.append(wrap(rate, "  ", "  "))
        lines += _signs(answer, lang)
        lines.append("")
        rows = _evidence(answer, main)
        lines += _table([row for row in rows if row[0].before is not None], lang)
        # What was measured on no curve (a traceback, a first NaN) is said in words.
        for e, _ in rows:
            if e.before is None:
                said = f"{words.curve_title(e, lang)}: {words.text_of(main, e, lang)}"
                lines.append(wrap(said, "  ", "    "))
    benign = [f for f in answer.findings if f.status == "benign"]
    others = [f for f in answer.findings if f.status == "present" and f is not main]
    follow = [f for f in answer.findings if f.status == "consequence"]
    if others:
        lines.append(
            wrap(
                say("text.also", lang, list="; ".join(_named(f, lang) for f in others)),
                "  ",
                "    ",
            )
        )
    for f in follow:
        lines.append(
            wrap(
                f"{say('text.consequence', lang, failure=f.failure, cause=f.because_of)} ({words.since(f, lang) or '-'})",
                "  ",
                "    ",
            )
        )
    if benign:
        lines.append(
            wrap(
                say("text.benign", lang, list="; ".join(_named(f, lang) for f in benign)),
                "  ",
                "    ",
            )
        )
    for n in answer.notes:
        lines.append(wrap(say("text.mind", lang, text=words.note(n, lang)), "  ", "    "))
    if main is not None:
        lines.append("")
        going_back = words.back(answer, lang)
        if going_back:
            lines.append(wrap(going_back, "  ", "    "))
        elif (
            run.checkpoints == ()
            and main.severity != "caution"
            and answer.first_action
            and answer.first_action.restart == "must"
        ):
            lines.append(wrap(say("text.no_checkpoint", lang), "  ", "    "))
        if answer.first_action:
            lines.append(wrap(words.change(answer.first_action, lang), "  ", "    "))
            restart = say(f"text.restart_{answer.first_action.restart}", lang)
            reason = (
                f"{say(answer.first_action.why, lang)}; " if answer.first_action.command else ""
            )
            lines.append(wrap(reason + restart, "    ", "    "))
            if answer.then:
                lines.append(
                    wrap(
                        say(
                            "text.then",
                            lang,
                            list=" / ".join(words.short(a, lang) for a in answer.then),
                        ),
                        "  ",
                        "    ",
                    )
                )
            if answer.smoke is not None:
                lines.append(wrap(words.smoke(answer, lang), "  ", "    "))
    unchecked = words.unchecked(answer, lang) if run.curves or everything else []
    if everything:
        lines.append("")
        for f in answer.findings:
            if f.status == "ruled_out" and f.evidence:
                lines.append(
                    wrap(f"- {f.failure}: {words.text_of(f, f.evidence[0], lang)}", "  ", "    ")
                )
    if run.curves:
        lines.append("")
        lines.append(wrap(words.stages(answer, lang), "", "  "))
    if unchecked:
        shown = unchecked if everything else unchecked[:LISTED]
        lines.append(wrap(say("text.not_checked", lang, list="; ".join(shown)), "", "  "))
        if len(shown) < len(unchecked):
            lines.append(wrap(say("text.more", lang, n=len(unchecked) - len(shown)), "  ", "  "))
    if main is not None:
        lines.append(say("text.hint_explain", lang, failure=main.failure))
    return "\n".join(lines).rstrip() + "\n"


def _signs(answer: Diagnosis, lang: str) -> list[str]:
    drawn = signs.lines(answer, lang)
    return ["", *drawn] if drawn else []


def _evidence(answer: Diagnosis, main: Finding) -> list[tuple[Evidence, str | None]]:
    """Evidence for the main failure, then what the normal curves rule out."""
    rows: list[tuple[Evidence, str | None]] = [(e, None) for e in main.evidence]
    shown = {e.metric for e in main.evidence}
    ruled = {f.failure: f for f in answer.findings if f.status == "ruled_out"}
    for slug in NEIGHBOURS:
        finding = ruled.get(slug)
        if finding is None or sum(1 for _, other in rows if other) >= AGAINST:
            continue
        e = next(
            (e for e in finding.evidence if e.before is not None and e.metric not in shown), None
        )
        if e is not None:
            rows.append((e, slug))
            shown.add(e.metric)
    return rows


def _table(rows: Sequence[tuple[Evidence, str | None]], lang: str) -> list[str]:
    cells = [
        (
            words.curve_title(e, lang),
            words.levels(e),
            words.shape(e, lang),
            say("text.rules_out", lang, failure=other) if other else say(f"says.{e.says}", lang),
        )
        for e, other in rows
    ]
    widths = [max((columns(row[i]) for row in cells), default=0) for i in range(3)]
    lines = []
    for row in cells:
        parts = [*(pad(row[i], widths[i]) for i in range(3)), row[3]]
        line = "  " + "  ".join(parts)
        keep = 3
        while columns(line.partition("\n")[0].rstrip()) > WIDTH and keep > 1:
            line = "  " + "  ".join(parts[:keep]).rstrip() + "\n      " + "  ".join(row[keep:])
            keep -= 1
        lines.append(line.rstrip())
    return lines


def _named(f: Finding, lang: str) -> str:
    at = words.since(f, lang)
    return f"{f.failure} ({at})" if at else f.failure


def _row(left: Sequence[str], right: str) -> str:
    plain = "  ".join(left)
    visible = columns(_unpaint(plain))
    if visible + 2 + columns(right) <= 80:
        return plain + " " * (80 - visible - columns(right)) + right
    return f"{plain}\n  {right}"


def _paint(text: str, kind: str, colour: bool) -> str:
    return f"\x1b[1;{COLOURS[kind]}m{text}\x1b[0m" if colour and kind in COLOURS else text


def _unpaint(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)
