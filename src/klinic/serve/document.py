"""The report of a run as the page takes it."""

from __future__ import annotations

import json

from klinic.diagnosis import Diagnosis


def document(answer: Diagnosis) -> bytes:
    """JSON of the report's data."""
    from klinic.render.report.data import report_data

    text = json.dumps(
        report_data(answer), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return text.encode("utf-8", "replace")
