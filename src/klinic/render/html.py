"""One self-contained page: the four answers, the eight curves and why, readable without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.render.report.data import report_data
from klinic.render.report.page import page
from klinic.text import say


def render(diagnoses: Sequence[Diagnosis], lang: str, **options: Any) -> str:
    """HTML of all runs, worst first. samples: what to show of each run, by its path; none unless given."""
    samples = options.get("samples") or {}
    documents = [report_data(answer, samples.get(answer.run.path, ())) for answer in diagnoses]
    first = diagnoses[0]
    said = first.main.failure if first.main else say(f"status.{first.status}", lang)
    return page(documents, lang, f"{first.run.name}: {said} · klinic")
