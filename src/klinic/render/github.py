"""Annotations of a GitHub Actions log: one line a finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.render import _words as words

LEVELS = {"stop": "error", "act": "error", "caution": "warning"}


def render(diagnoses: Sequence[Diagnosis], lang: str, **options: Any) -> str:
    """``::error title=...::...`` for every present finding, a notice for a run without one."""
    lines = []
    for answer in diagnoses:
        found = [f for f in answer.findings if f.status == "present"]
        for f in found:
            text = "; ".join(words.text_of(f, e, lang) for e in f.evidence)
            lines.append(
                f"::{LEVELS[f.severity or 'caution']} title={_escape(f'{answer.run.name}: {f.failure}')}::{_escape(f'{words.since(f, lang)} {text}'.strip())}"
            )
        if not found:
            lines.append(f"::notice title={_escape(answer.run.name)}::{answer.status}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return (
        text.replace("%", "%25")
        .replace("\r", "%0D")
        .replace("\n", "%0A")
        .replace(",", "%2C")
        .replace("::", "%3A%3A")
    )
