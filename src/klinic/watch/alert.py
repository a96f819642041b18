"""One alert as plain data: what is stored, sent and shown."""

from __future__ import annotations

import hashlib
import time
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.render import _words as words
from klinic.render.as_json import as_dict
from klinic.text import say_in
from klinic.watch.monitor import Change

SCHEMA_VERSION = 1


def alert(
    change: Change, answer: Diagnosis, key: str, mean_steps: int, lang: str
) -> dict[str, Any]:
    """key: the run's own, from which the alert's id is made; the same change always gets the same id."""
    body = as_dict(answer, lang)
    leads = answer.main is not None and answer.main.failure == change.failure
    found = next((f for f in body["findings"] if f["failure"] == change.failure), None)
    named = change.metric is None
    said = {
        "schema_version": SCHEMA_VERSION,
        "klinic_version": body["klinic_version"],
        "id": hashlib.sha256(f"{key}\n{change.key}".encode()).hexdigest()[:24],
        "lang": lang,
        "run": answer.run.name,
        "path": answer.run.path,
        "trainer": answer.run.trainer.name,
        "state": change.kind,
        "failure": change.failure if named else None,
        "metric": change.metric,
        "severity": change.severity,
        "confidence": found["confidence"] if found and named else None,
        "onset": (found or {}).get("onset")
        or (None if change.onset is None else {"step": change.onset}),
        "step": change.step,
        "first_action": body["first_action"] if leads else None,
        "roll_back_to": body["roll_back_to"] if leads else None,
        "mean_steps_between_false_alarms": None if named else mean_steps,
        "time": round(time.time(), 3),
    }
    return {**said, "text": _text(change, answer, leads and change.kind != "resolved", said, lang)}


def _text(change: Change, answer: Diagnosis, acts: bool, said: dict[str, Any], lang: str) -> str:
    """A headline, then what to do."""
    values = {
        "run": said["run"],
        "step": change.step,
        "onset": (said["onset"] or {}).get("step", change.step),
        "failure": change.failure,
        "title": words.title(change.failure, lang) if change.metric is None else "",
        "metric": words.metric_title(change.metric, lang) if change.metric else "",
        "severity": say_in("watch", f"severity.{change.severity}", lang),
        "mean": said["mean_steps_between_false_alarms"],
    }
    kind = change.kind if change.metric is None else f"{change.kind}_unnamed"
    lines = [say_in("watch", f"alert.{kind}", lang, **values)]
    if change.metric is not None and change.kind == "firing":
        lines.append(say_in("watch", "alert.promise", lang, **values))
    if acts:
        if answer.first_action is not None:
            lines.append(words.change(answer.first_action, lang))
        if (back := words.back(answer, lang)) is not None:
            lines.append(back)
    return "\n".join(lines)
