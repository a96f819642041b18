"""Where the shared logs lie, if they lie beside the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Other tests run at the same time: how long an example takes says nothing.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "benchmarks")]
SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public logs; tests that need it are skipped elsewhere."""
    if not (SHARED / "bench" / "dev.json").exists():
        pytest.skip("the shared logs are not beside this checkout")
    return SHARED
