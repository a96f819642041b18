"""klinic reads what an RL post-training run left behind and says what is wrong, since when, and what to change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klinic.diagnose import diagnose
    from klinic.diagnosis import Diagnosis
    from klinic.read import read
    from klinic.run import Run

__version__ = "0.1.0"
__all__ = ["Diagnosis", "Run", "diagnose", "read"]
_HOMES = {
    "Diagnosis": "klinic.diagnosis",
    "Run": "klinic.run",
    "diagnose": "klinic.diagnose",
    "read": "klinic.read",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: importing klinic stays cheap."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'klinic' has no attribute {name!r}")
