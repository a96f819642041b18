"""A real TRL run, made here and diagnosed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "make_demo_run.py"


def test_a_run_of_trls_own_trainer_is_read_and_its_collapse_is_found(tmp_path):
    pytest.importorskip("trl", reason="the torch extra is not installed")
    from klinic.diagnose import diagnose
    from klinic.read import read

    done = subprocess.run(
        [sys.executable, SCRIPT, "run"], cwd=tmp_path, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (tmp_path / "run" / "stdout.log").write_text(done.stdout + done.stderr)
    run = read(tmp_path / "run" / "trainer_state.json")
    assert run.trainer.name == "trl" and run.last == 140
    console = read(tmp_path / "run" / "stdout.log")
    for name, curve in run.curves.items():
        if name in console.curves and not name.startswith(("epoch", "time", "tokens")):
            assert console.curves[name].steps.tolist() == curve.steps.tolist(), name
    answer = diagnose(tmp_path / "run")
    assert answer.main is not None and answer.main.failure == "entropy-collapse"
    assert 35 <= answer.main.onset.step <= 60
    assert answer.roll_back_to is not None and answer.roll_back_to.step <= 40
