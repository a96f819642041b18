"""Samples and what they tell, in a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from klinic.render._layout import pad, wrap
from klinic.render._visible import visible
from klinic.rollouts.query import Difference
from klinic.run import Samples
from klinic.text import figure, say_in

SHOWN = 600  # characters of a text that is not asked for in full: its beginning and its end
PROMPT = 240
JUDGED = (
    0.95  # share of the samples below which it is said beside the share of right ones (our choice)
)
OUTLINE = tuple(
    [
        "reward",
        "acc",
        "right",
        "length",
        "truncated",
        "unique",
        "near",
        "opening",
        "loops",
        "mixed",
        "refusal",
        "flattery",
        "empty",
        "unread",
        "copied",
        "echoed",
        "failed",
        "broken",
    ]
)


def _say(key: str, lang: str, **values: Any) -> str:
    return say_in("rollouts", key, lang, **values)


def summary(
    samples: Samples, steps: Mapping[int, Mapping[str, Any]], skipped: int, run: str, lang: str
) -> str:
    """What there is, the forms found, and how the first, the middle and the last step look."""
    order = sorted(steps)
    lines = [
        wrap(_say("count", lang, count=samples.count, steps=samples.steps, first=samples.first, last=samples.last, dumps=len(samples.dumps)))
    ]  # fmt: skip
    if samples.picked:
        lines.append(wrap(_say("picked", lang)))
    if skipped:
        lines.append(_say("skipped", lang, count=skipped))
    lines.append("")
    if samples.forms:
        lines.append(_say("forms", lang))
        for form in samples.forms:
            name = f"{form.name} ({_say(f'form_name.{form.name}', lang)})"
            said = _say("form", lang, name=name, step=form.step, low=form.low, high=form.high, before=figure(form.before), after=figure(form.after))  # fmt: skip
            lines.append(wrap(said, "  ", "    "))
    else:
        lines.append(wrap(_say("none", lang)))
    shown = list(dict.fromkeys((order[0], order[len(order) // 2], order[-1])))
    lines += ["", _say("steps", lang)]
    rows = [("", *(str(step) for step in shown))]
    for name in OUTLINE:
        values = [_value(steps[step], name) for step in shown]
        if name == "echoed" and any(_value(steps[step], "copied") is not None for step in shown):
            continue  # words that come back grow with the length; runs of them do not
        if any(v is not None and (v != 0 or name in ("reward", "acc", "right")) for v in values):
            cells = ["-" if v is None else figure(v) for v in values]
            if name == "right":
                cells = [
                    _of_judged(c, steps[step], lang) for c, step in zip(cells, shown, strict=True)
                ]
            rows.append((_say(f"m.{name}", lang), *cells))
    lines += [
        f"  {pad(row[0], 20)}{''.join(pad(cell, 15) for cell in row[1:])}".rstrip() for row in rows
    ]
    if len(order) > 1:
        lines += _lengths(steps[order[0]], steps[order[-1]], lang, bool(samples.forms))
    tasks = steps[order[-1]].get("tasks", {})
    if tasks:
        lines += ["", _say("tasks", lang)]
        for task, said in sorted(tasks.items(), key=lambda item: -item[1]["n"])[:12]:
            told = ", ".join(
                f"{_say(f'm.{name}', lang)} {figure(said[name])}"
                for name in ("reward", "right", "length")
                if said.get(name) is not None
            )
            lines.append(wrap(f"{task}: {told} ({said['n']})", "  ", "    "))
    lines += ["", "hint: " + _say("hint_top", lang, run=run, step=order[-1])]
    if len(order) > 1:
        lines.append("hint: " + _say("hint_diff", lang, run=run, first=order[0], last=order[-1]))
    return "\n".join(lines) + "\n"


def _of_judged(cell: str, step: Mapping[str, Any], lang: str) -> str:
    """A mean over those that could be judged says little where few could."""
    share = step.get("judged", 1.0)
    return cell if share >= JUDGED else _say("judged", lang, value=cell, share=f"{share:.0%}")


def _value(step: Mapping[str, Any], name: str) -> float | None:
    found = step["mean"].get(name, step.get(name))
    return None if found is None else float(found)


def _lengths(
    first: Mapping[str, Any], last: Mapping[str, Any], lang: str, explained: bool
) -> list[str]:
    """How right and wrong answers grow: the discriminator of the length's cause (science.md D4)."""
    sides = [(s.get("length_wrong"), s.get("length_right")) for s in (first, last)]
    if any(value is None for side in sides for value in side):
        return []
    (wrong_before, right_before), (wrong_after, right_after) = sides
    assert (
        wrong_before is not None
        and wrong_after is not None
        and right_before is not None
        and right_after is not None
    )
    levels = {
        "wrong_before": figure(wrong_before),
        "wrong_after": figure(wrong_after),
        "right_before": figure(right_before),
        "right_after": figure(right_after),
    }
    said = ["", wrap(_say("wrong_longer", lang, **levels))]
    if (
        not explained and wrong_after >= 1.4 * wrong_before and right_after < 1.1 * right_before
    ):  # growth as in length-explosion
        said.append(wrap(_say("wrong_only", lang)))
    return said


def listing(rows: Sequence[Mapping[str, Any]], lang: str, full: bool) -> str:
    """Samples to read, one after the other."""
    if not rows:
        return _say("nothing", lang) + "\n"
    lines: list[str] = []
    asked = None
    for row in rows:
        name = f"{row['step']}/{row['group']}/{row['row']}"
        more = ", ".join(
            f"{_say(f'm.{key}', lang)} {figure(float(row[key]))}"
            for key in ("acc", "right", "length", "truncated")
            if row[key] is not None and float(row[key]) == float(row[key])
        )
        reward = (
            "-"
            if row["reward"] is None or row["reward"] != row["reward"]
            else figure(row["reward"])
        )
        lines.append(wrap(_say("sample", lang, name=name, reward=reward, more=more), "", "  "))
        if row["reward_parts"]:
            parts = ", ".join(
                f"{part} {figure(value)}" for part, value in row["reward_parts"].items()
            )
            lines.append(wrap(_say("parts", lang, parts=parts), "  ", "    "))
        if row["prompt"] and row["prompt"] != asked:
            asked = row["prompt"]
            lines += _text(_say("asked", lang), asked, PROMPT, lang, full)
        if row["answer"]:
            lines += _text(_say("label", lang, answer=""), row["answer"], 80, lang, full)
        lines += [*_text(_say("wrote", lang), row["completion"], SHOWN, lang, full), ""]
    return "\n".join(lines)


def _text(title: str, text: str, most: int, lang: str, full: bool) -> list[str]:
    text = visible(text)
    left = 0
    if not full and len(text) > most:
        left = len(text) - most
        text = f"{text[: most // 2]} [...] {text[-most // 2 :]}"
    lines = [f"  {title}"]
    for line in text.split("\n"):
        if line.strip():
            lines += _broken(line)
    if left:
        lines.append("    " + _say("cut", lang, count=left))
    return lines


def _broken(line: str) -> list[str]:
    """Wrapped at 80 columns, and a word that is longer cut: a loop may well hold no blank."""
    pieces = re.sub(r"(\S{60})(?=\S)", r"\1 ", line)
    return wrap(pieces, "    ", "    ").split("\n")


def difference(found: Difference, lang: str) -> str:
    """What the best answers do now that they did not before."""
    lines = [
        wrap(
            _say(
                "diff",
                lang,
                before=found.before,
                after=found.after,
                n_before=found.counts[0],
                n_after=found.counts[1],
            )
        ),
        "",
        _say("diff_means", lang),
        *(
            f"  {pad(_say(f'm.{name}', lang), 20)}{figure(a)} -> {figure(b)}"
            for name, a, b in found.measures
        ),
    ]
    for key, phrases in (("diff_new", found.phrases), ("diff_gone", found.gone)):
        if phrases:
            lines += ["", wrap(_say(key, lang))]
            lines += [f"  {a:4.0%} -> {b:4.0%}   {visible(phrase)}" for phrase, a, b in phrases]
    return "\n".join(lines) + "\n"
