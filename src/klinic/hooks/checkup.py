"""A diagnosis of the run so far, from its rows in memory: what is new in it, and whether to save or to stop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage, did_you_mean
from klinic.failures import SEVERITIES
from klinic.files import write_whole
from klinic.read import read_rows
from klinic.render import as_json, text
from klinic.watch.monitor import Monitor

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
    """Diagnoses a run again and again, and tells each failure once, and again where it has become worse.

    confidence: how sure it must be of what it tells ("certain", "likely" or "possible"); the last word, when the run has ended, tells all.
    """

    def __init__(self, lang: str = "en", confidence: str = "likely") -> None:
        self.lang = lang
        self.monitor = Monitor(every=1, alert_on=SEVERITIES[-1], confidence=confidence)
        self._last, self._cost = time.perf_counter(), 0.0

    @property
    def latest(self) -> Diagnosis | None:
        """The latest diagnosis, None before the first."""
        return self.monitor.diagnosis

    def affordable(self) -> bool:
        """Whether another diagnosis would stay within its share of the time."""
        return time.perf_counter() - self._last >= self._cost / SHARE

    def look(
        self,
        rows: Iterable[Mapping[str, Any]],
        folder: str | Path,
        config: Mapping[str, Any] | None = None,
        ended: bool = False,
    ) -> str:
        """Diagnose the rows, write ``klinic.json`` into the run's folder, and return what is to be told: "" if nothing is new."""
        begun, before = time.perf_counter(), self.latest
        run = read_rows(rows, name=Path(folder).name, folder=folder, config=config)
        new = [c for c in self.monitor.look(run, settled=ended) if c.finding is not None]
        if self.latest is None:
            return ""
        document = as_json.render([self.latest], self.lang)
        write_whole(Path(folder) / FILE, document.encode(), parents=True)
        said = text.render([self.latest], self.lang) if new else ""
        self._last = time.perf_counter()
        if before is not None:  # the first one also loads tables and pages, once
            self._cost = self._last - begun
        return said

    def reached(self, severity: str | None) -> tuple[str, ...]:
        """The failures that were told and still stand, as grave as ``severity`` or graver. None: none."""
        if severity is None:
            return ()
        graver = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(
            slug for slug, told in self.monitor.state.told.items() if told.severity in graver
        )
