"""The memory budget, as text, Markdown or JSON."""

from __future__ import annotations

from functools import partial
from typing import Any

from klinic import __version__
from klinic.advise.knobs import command
from klinic.memory.budget import GOOD, LEAST, Change, Ledger, Side
from klinic.render._layout import columns, pad, wrap
from klinic.render.as_json import encoded
from klinic.text import figure, say_in
from klinic.trainers import Table

_say = partial(say_in, "memory")
ROWS = ("weights", "gradients", "optimizer", "gathered", "reference", "critic", "activations",
        "logits", "kv-cache", "sampler", "trainer", "context")  # fmt: skip


def render(found: Ledger, change: Change | None, table: Table, form: str, lang: str) -> str:
    """One budget. change: the first thing to change, None where it fits or nothing helps."""
    if form == "json":
        return encoded(_dict(found, change, table))
    told = _told(found, change, table, lang)
    rows = _rows(found, lang)
    if form == "markdown":
        lines = [f"## {_head(found, lang)}", "", _batch(found, lang), ""]
        lines += [f"| {' | '.join(rows[0])} |", "|---|---:|---:|"]
        lines += [f"| {' | '.join(row)} |" for row in rows[1:]]
        return "\n".join([*lines, "", *(f"- {line}" for line in told)]) + "\n"
    widths = [max(columns(row[i]) for row in rows) for i in range(3)]
    lines = [wrap(_head(found, lang), "", "  "), wrap(_batch(found, lang), "  ", "  "), ""]
    for row in rows:
        cells = [" " * (widths[i] - columns(row[i])) + row[i] for i in (1, 2)]
        lines.append(f"  {pad(row[0], widths[0])}  {cells[0]}  {cells[1]}")
    return "\n".join([*lines, "", *(wrap(line, "  ", "    ") for line in told)]) + "\n"


def _head(found: Ledger, lang: str) -> str:
    plan = found.plan
    states = f"states-{'pure' if plan.dtype == 'pure' else 'mixed'}"
    if plan.lora:
        count = plan.model.adapters(plan.lora) / 1e6
        told = _say("states-lora", lang, rank=plan.lora, count=f"{count:.0f}")
    else:
        told = _say(states, lang)
    billions = f"{plan.model.parameters / 1e9:.2f}"
    return _say("head", lang, model=plan.model.name, count=billions, gpus=plan.gpus, gpu=plan.gpu,
                sharding=plan.sharding, states=told)  # fmt: skip


def _batch(found: Ledger, lang: str) -> str:
    plan = found.plan
    return _say("batch", lang, prompt=plan.prompt, completion=plan.completion, longest=plan.longest,
                micro=plan.micro)  # fmt: skip


def _rows(found: Ledger, lang: str) -> list[tuple[str, str, str]]:
    sides = (found.train, found.rollout)
    rows = [(_say("each", lang), _say("train", lang), _say("rollout", lang))]
    for name in ROWS:
        values = [side.rows.get(name, 0.0) for side in sides]
        if any(value >= 0.05 for value in values):
            rows.append((_say(name, lang), *(_size(value) for value in values)))  # type: ignore[arg-type]
    rows.append((_say("total", lang), *(_size(side.total) for side in sides)))  # type: ignore[arg-type]
    rows.append((_say("margin", lang), *(_percent(side.margin) for side in sides)))  # type: ignore[arg-type]
    return rows


def _size(gib: float) -> str:
    return f"{gib:.1f}" if gib >= 0.05 else "-"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _told(found: Ledger, change: Change | None, table: Table, lang: str) -> list[str]:
    plan, lines = found.plan, []
    if found.starts:
        groups = figure(found.at_once / plan.group)
        lines.append(_say("cache", lang, room=found.room, at_once=figure(found.at_once), groups=groups, group=plan.group))  # fmt: skip
    else:
        lines.append(_say("no-cache", lang, room=found.room, longest=plan.longest))
    worse: Side = min((found.train, found.rollout), key=lambda side: side.margin)
    if found.margin < 0:
        short = f"{worse.total - worse.card:.1f}"
        lines.append(_say("over", lang, short=short, side=_say(worse.name, lang)))
    elif found.starts:
        word = "good" if found.margin >= GOOD else "just" if found.margin >= LEAST else "tight"
        lines.append(_say(word, lang))
    if change is not None:
        key = "change" if change.enough else "change-some"
        lines.append(_say(key, lang, what=_flag(change, table), margin=_percent(change.margin)))
    elif found.margin < LEAST or not found.starts:
        lines.append(_say("nothing", lang))
    return [*lines, _say("mind", lang)]


def _flag(change: Change, table: Table) -> str:
    knob = table.knob.get(change.knob)
    if knob is None:
        return f"{change.knob} = {change.new}"
    return command(knob.flag, change.new, knob.style or table.style) or knob.flag


def _dict(found: Ledger, change: Change | None, table: Table) -> dict[str, Any]:
    plan = found.plan
    return {
        "schema_version": 1,
        "klinic_version": __version__,
        "model": {"name": plan.model.name, "parameters": plan.model.parameters},
        "longest": plan.longest,
        **{
            side.name: {
                "gib": side.rows,
                "total": side.total,
                "card": side.card,
                "margin": side.margin,
            }
            for side in (found.train, found.rollout)
        },
        "cache": {"tokens": found.room, "longest_sequences": found.at_once, "starts": found.starts},
        "fits": found.margin >= 0 and found.starts,
        "margin": found.margin,
        "first_change": None
        if change is None
        else {
            "knob": change.knob,
            "new": change.new,
            "command": _flag(change, table),
            "margin": change.margin,
            "enough": change.enough,
        },
    }
