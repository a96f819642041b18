"""For pasting into a bug report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.render import _words as words
from klinic.render._table import HEADS, cells, totals
from klinic.text import page, say


def render(diagnoses: Sequence[Diagnosis], lang: str, **options: Any) -> str:
    """One section a run, below a table where there are several."""
    sections = "\n".join(_section(answer, lang) for answer in diagnoses)
    if len(diagnoses) < 2:
        return sections
    head, *rows = (f"| {' | '.join(map(_cell, row))} |" for row in cells(diagnoses, lang))
    rule = "|" + "---|" * len(HEADS)
    return "\n".join([totals(diagnoses, lang), "", head, rule, *rows, "", sections])


def _section(answer: Diagnosis, lang: str) -> str:
    run, main = answer.run, answer.main
    whole = say("text.run", lang, name=run.name, trainer=run.trainer.title, steps=run.logged)
    lines = [f"## {main.failure if main else say(f'status.{answer.status}', lang)}", "", whole, ""]
    if main is None:
        lines.append(say("text.nothing" if answer.status == "healthy" else "text.undecided", lang))
    else:
        parts = [
            words.since(main, lang),
            say(f"severity.{main.severity}", lang),
            say(f"confidence.{main.confidence}", lang),
        ]
        lines += [
            f"**{words.title(main.failure, lang)}** {', '.join(part for part in parts if part)}. {page(main.failure, lang).summary}.",
            words.hit_rate(main, lang),
            "",
        ]
        lines += ["| | | | |", "|---|---|---|---|"]
        for e in main.evidence:
            lines.append(
                f"| {words.curve_title(e, lang)} | {words.levels(e)} | {say(f'says.{e.says}', lang)} | {_cell(words.text_of(main, e, lang))} |"
            )
        lines.append("")
    for f in answer.findings:
        if f.status == "consequence":
            lines.append(
                f"- {say('text.consequence', lang, failure=f.failure, cause=f.because_of)} ({words.since(f, lang)})"
            )
        elif f.status == "present" and f is not main:
            lines.append(f"- {say('text.also', lang, list=f.failure)} ({words.since(f, lang)})")
        elif f.status == "benign":
            lines.append(f"- {say('text.benign', lang, list=f.failure)}")
    lines += [f"- {say('text.mind', lang, text=words.note(n, lang))}" for n in answer.notes]
    going_back = words.back(answer, lang)
    if going_back:
        lines.append(f"1. {going_back}")
    if answer.first_action is not None:
        lines.append(f"{2 if going_back else 1}. {words.change(answer.first_action, lang)}")
        if answer.smoke is not None:
            lines.append(f"{3 if going_back else 2}. {words.smoke(answer, lang)}")
    ruled = [f for f in answer.findings if f.status == "ruled_out" and f.evidence]
    if ruled:
        lines += [
            "",
            "<details><summary>" + say("text.rules_out", lang, failure=len(ruled)) + "</summary>",
            "",
        ]
        lines += [f"- {f.failure}: {words.text_of(f, f.evidence[0], lang)}" for f in ruled]
        lines += ["", "</details>"]
    unchecked = words.unchecked(answer, lang)
    if unchecked:
        lines += ["", say("text.not_checked", lang, list="; ".join(unchecked))]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
