"""A diagnosis of the run so far, from its rows in memory: what is new in it, and whether to save or to stop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from klinic.diagnose import diagnose
from klinic.diagnosis import Diagnosis, Finding
from klinic.errors import BadUsage, did_you_mean
from klinic.failures import SEVERITIES
from klinic.files import write_whole
from klinic.read import read_rows
from klinic.render import as_json, text

SURE = ("certain", "likely", "possible")  # surest first
# Of the time since the last one that a diagnosis may take: fast steps wait longer for the next (our choice).
SHARE = 0.01
FILE = "klinic.json"


def checked(value: str | None, known: tuple[str, ...], where: str) -> str | None:
    """The word, if it is one of the known ones. Raises BadUsage otherwise."""
    if value is not None and value not in known:
        raise BadUsage(
            f"unknown word {value!r}",
            where,
            did_you_mean(value, known) or f"known: {', '.join(known)}",
        )
    return value


class Checkup:
    """Diagnoses a run again and again. Each failure is told once, and again where it has become worse."""

    def __init__(self, lang: str = "en") -> None:
        self.lang = lang
        self.latest: Diagnosis | None = None
        self._told: dict[str, int] = {}
        self._last, self._cost = time.perf_counter(), 0.0

    def affordable(self) -> bool:
        """Whether another diagnosis would stay within its share of the time."""
        return time.perf_counter() - self._last >= self._cost / SHARE

    def look(
        self,
        rows: Iterable[Mapping[str, Any]],
        folder: str | Path,
        config: Mapping[str, Any] | None = None,
    ) -> str:
        """Diagnose the rows, write ``klinic.json`` into the run's folder, and return what is to be told: "" if nothing is new."""
        begun, before = time.perf_counter(), self.latest
        run = read_rows(rows, name=Path(folder).name, folder=folder, config=config)
        self.latest = diagnose(run)
        document = as_json.render([self.latest], self.lang)
        write_whole(Path(folder) / FILE, document.encode(), parents=True)
        new = [f for f in self.found() if _weight(f) < self._told.get(f.failure, len(SEVERITIES))]
        for finding in new:
            self._told[finding.failure] = _weight(finding)
        said = text.render([self.latest], self.lang) if new else ""
        self._last = time.perf_counter()
        if before is not None:  # the first one also loads tables and pages, once
            self._cost = self._last - begun
        return said

    def found(self) -> list[Finding]:
        """What is present, causes first; consequences are told with their causes."""
        latest = self.latest
        return [f for f in latest.findings if f.status == "present"] if latest else []

    def reached(self, severity: str | None, confidence: str) -> bool:
        """Whether a finding is as grave as ``severity`` and at least as sure as ``confidence``. None: never."""
        if severity is None or self.latest is None:
            return False
        return any(
            _weight(f) <= SEVERITIES.index(severity)
            and SURE.index(f.confidence or "possible") <= SURE.index(confidence)
            for f in self.found()
        )


def _weight(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity or "caution")
