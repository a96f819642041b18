"""What each step of the last exercise is checked against: the label the lab wrote, its folders, a smoke run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from klinic.course.desk import Desk
from klinic.course.scenes import Log
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage, did_you_mean
from klinic.vitals import VITALS

SMOKE = 20  # steps of the short run
LONGEST = 60  # steps of a short run at most
EARLY, LATE = 12, 20  # steps around the injection that count as the onset; it takes a few to show
NEAR = 8  # steps around an interval or a step that was computed
VERDICTS = {
    "better": ("better", "变好", "好"),
    "worse": ("worse", "变坏", "坏"),
    "inconclusive": ("inconclusive", "看不出", "unclear", "不确定"),
}


def onset(
    desk: Desk, log: Log, label: dict[str, Any], answer: Diagnosis, step: int
) -> tuple[bool, str]:
    """Whether the step is near the injection, in klinic's own interval, or near where the lab calls it manifest."""
    at, shown = int(label["inject_step"]), int(label["manifest"]["step"])
    found = answer.main.onset if answer.main is not None else None
    values = {"step": step, "at": at, "shown": shown, "curve": _around(log, step)}
    dated = found is not None and found.low - NEAR <= step <= found.high + NEAR
    if at - EARLY <= step <= at + LATE or (dated and step <= shown):
        return True, desk.say("lab.onset.right", **values)
    if abs(step - shown) <= NEAR:
        return True, desk.say("lab.onset.late", **values)
    return False, desk.say("lab.onset.early" if step < at else "lab.onset.past", **values)


def _around(log: Log, step: int) -> str:
    """The deciding curves before, around and after a step."""
    from klinic.text import figure

    told = []
    for role in log.tells:
        start = _mean(log, role, 0, 15)
        here = _mean(log, role, step - 5, step + 5)
        end = _mean(log, role, log.steps[-1] - 15, log.steps[-1])
        if start is not None and here is not None and end is not None:
            told.append(f"{role} {figure(start)} ... {figure(here)} ... {figure(end)}")
    return "; ".join(told)


def _mean(log: Log, key: str, first: int, last: int) -> float | None:
    values = [row[key] for row in log.rows if first <= row["step"] <= last and key in row]
    return float(f"{sum(values) / len(values):.3g}") if values else None


def checkpoint(
    desk: Desk, place: Path, label: dict[str, Any], answer: Diagnosis, dated: int, step: int
) -> tuple[int, str]:
    """Steps of a short run that meets the trouble from this checkpoint, 0 where it will not do; and what is said.

    Any whole checkpoint will do that lies before the trouble, before the onset the learner found, or before the low
    edge of klinic's own interval, as long as a short run from it reaches the trouble at all.
    """
    at, shown = int(label["inject_step"]), int(label["manifest"]["step"])
    have = sorted(int(c.name.partition("-")[2]) for c in place.glob("checkpoint-*"))
    if step not in have:
        raise BadUsage(
            desk.say("lab.back.none", step=step),
            "back",
            desk.say("lab.back.have", list=" ".join(map(str, have))),
        )
    found = answer.main.onset if answer.main is not None else None
    low = found.low if found is not None else at
    safe = max(at, min(max(dated, low), shown))
    best = max(c for c in have if c <= at)
    need = max(SMOKE, -(-(at + SMOKE - step) // SMOKE) * SMOKE) if step < best else SMOKE
    values = {"step": step, "at": at, "best": best, "steps": need, "longest": LONGEST}
    if step > safe:
        return 0, desk.say("lab.back.after", **values)
    if need > LONGEST:
        return 0, desk.say("lab.back.blind", **values)
    kind = "quiet" if step > at else "right" if step == best else "far"
    said = desk.say(f"lab.back.{kind}", **values)
    tool = answer.roll_back_to
    if tool is not None and tool.step != best:
        said += " " + desk.say("lab.back.tool", tool=tool.step, low=low)
    return need, said


def change(desk: Desk, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Exactly one setting or one repair. Raises BadUsage for none, several or an unknown one."""
    from klinic.lab.settings import DEFAULTS, GROUPS, Settings, changed, parse_changes

    if len(words) == 2 and words[0] in DEFAULTS:  # as klinic writes the lab's settings
        words = ["=".join(words)]
    pairs = [word for word in words if "=" in word]
    rest = [word for word in words if "=" not in word and word.lower() not in ("fix", "--fix")]
    if len(pairs) + len(rest) != 1:
        raise BadUsage(
            desk.say("lab.one" if pairs or rest else "lab.what"), "change", desk.say("lab.example")
        )
    if rest:
        group = {"奖励": "reward", "代码": "code", "数据": "data"}.get(rest[0], rest[0].lower())
        if group not in GROUPS:
            known = [*GROUPS, *DEFAULTS]
            raise BadUsage(
                desk.say("error.task", word=rest[0]),
                "change",
                did_you_mean(group, known) or desk.say("lab.example"),
            )
        return {}, [group]
    changes = parse_changes(pairs)
    changed(Settings(), changes)
    return changes, []


def verdict(desk: Desk, place: Path, answer: Diagnosis, start: int, steps: int) -> tuple[str, str]:
    """klinic's verdict on the smoke run, and the table the learner judges by."""
    found = _smoke(place, answer, start, steps)
    return found.verdict, _table(desk, place, start, steps, answer)


def told(desk: Desk, place: Path, answer: Diagnosis, start: int, steps: int) -> str:
    """klinic's own words on the smoke run."""
    from klinic.render._smoke import render

    return str(render(_smoke(place, answer, start, steps), "text", desk.lang)).rstrip()


def _smoke(place: Path, answer: Diagnosis, start: int, steps: int) -> Any:
    from klinic.compare.smoke import smoke

    return smoke(
        answer,
        [place / "change-1", place / "change-2"],
        [place / "control-2"],
        steps=steps,
        start=start,
        include_old=True,
    )


def _table(desk: Desk, place: Path, start: int, steps: int, answer: Diagnosis) -> str:
    """First and last five steps of both arms, curve by curve, each mean over both draws."""
    import json

    from klinic.render._layout import columns, pad
    from klinic.text import figure

    def rows(name: str) -> list[dict[str, Any]]:
        text = (place / name / "metrics.jsonl").read_text(encoding="utf-8")
        told = [json.loads(line) for line in text.splitlines()]
        return [row for row in told if start <= row["step"] < start + steps]

    def span(arms: Sequence[list[dict[str, Any]]], key: str) -> str:
        ends = []
        for part in (slice(0, 5), slice(-5, None)):
            values = [row[key] for arm in arms for row in arm[part] if row.get(key) is not None]
            ends.append(figure(float(f"{sum(values) / len(values):.3g}")) if values else "-")
        return " -> ".join(ends)

    control, changed = [rows("."), rows("control-2")], [rows("change-1"), rows("change-2")]
    keys = [*VITALS, "trunc", "grad_norm", "ratio_geo"]
    lines = [("", desk.say("lab.control"), desk.say("lab.change"))]
    lines += [(key, span(control, key), span(changed, key)) for key in keys]
    widths = [max(columns(line[i]) for line in lines) for i in range(3)]
    head = desk.say("lab.smoked", first=start, last=start + steps - 1)
    return "\n".join(
        [
            head,
            *(
                "  " + "   ".join(pad(c, w) for c, w in zip(line, widths, strict=True)).rstrip()
                for line in lines
            ),
        ]
    )


def word(desk: Desk, words: Sequence[str]) -> str:
    """The verdict that was typed. Raises BadUsage for another word."""
    typed = " ".join(words).lower()
    for slug, names in VERDICTS.items():
        if typed in names:
            return slug
    raise BadUsage(
        desk.say("error.answer", word=typed or "-"),
        "judge",
        did_you_mean(typed, VERDICTS) or "better, worse, inconclusive",
    )
