"""The report of a run as the page takes it."""

from __future__ import annotations

import json
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.serve.visible import visible


def document(answer: Diagnosis) -> bytes:
    """JSON of the report's data."""
    from klinic.render.report.data import report_data

    data = report_data(answer)
    data["run"] = _visible(data["run"])
    data["marks"]["events"] = _visible(data["marks"]["events"])
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "replace"
    )


def _visible(found: Any) -> Any:
    """What the log itself says, without characters that act."""
    if isinstance(found, dict):
        return {name: _visible(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_visible(value) for value in found]
    return visible(found) if isinstance(found, str) else found
