"""Where the shared logs lie, if they lie beside the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public logs; tests that need it are skipped elsewhere."""
    if not (SHARED / "bench" / "dev.json").exists():
        pytest.skip("the shared logs are not beside this checkout")
    return SHARED
