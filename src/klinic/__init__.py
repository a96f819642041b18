"""klinic reads what an RL post-training run left behind and says what is wrong, since when, and what to change."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klinic.diagnose import diagnose
    from klinic.diagnosis import Diagnosis
    from klinic.instrument import Recorder
    from klinic.read import read
    from klinic.run import Run

__version__ = "0.1.0"
__all__ = ["Diagnosis", "Recorder", "Run", "diagnose", "read"]
_HOMES = {
    "Diagnosis": "klinic.diagnosis",
    "Recorder": "klinic.instrument",
    "Run": "klinic.run",
    "diagnose": "klinic.diagnose",
    "read": "klinic.read",
}


class _Package(ModuleType):
    """klinic.read and klinic.diagnose are functions although modules of the same names hold them."""

    def _public(name: str) -> property:  # type: ignore[misc]
        def get(self: ModuleType) -> Any:
            return getattr(importlib.import_module(_HOMES[name]), name)

        def keep(self: ModuleType, value: object) -> None:
            """The import system sets a submodule as an attribute here; the function stays."""

        return property(get, keep)

    read = _public("read")
    diagnose = _public("diagnose")
    Run = _public("Run")
    Diagnosis = _public("Diagnosis")
    Recorder = _public("Recorder")


sys.modules[__name__].__class__ = _Package
