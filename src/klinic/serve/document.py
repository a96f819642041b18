"""The report of a run as the page takes it."""

from __future__ import annotations

from klinic.diagnosis import Diagnosis


def document(answer: Diagnosis) -> bytes:
    """JSON of the report's data."""
    from klinic.render.as_json import as_dict, encoded

    return encoded(as_dict(answer, "en")).encode()
