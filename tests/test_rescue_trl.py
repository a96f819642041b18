"""A real TRL run, rescued through a command template."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "tiny_trl.py"
CALL = (
    "{python} " + str(SCRIPT) + " --resume_from_checkpoint {checkpoint} {flag} {value} "
    "--output_dir {out} --max_steps {until} --seed {seed}"
)


def test_an_entropy_collapse_under_trl_is_rescued(tmp_path):
    pytest.importorskip("trl", reason="the torch extra is not installed")
    words = [sys.executable, SCRIPT, "--output_dir", "run", "--max_steps", "60"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    (tmp_path / "run" / "stdout.log").write_text(done.stdout + done.stderr)
    done = subprocess.run(
        [sys.executable, "-m", "klinic", "rescue", "run", "--on", "40", "--format", "json",
         "--command", CALL],
        cwd=tmp_path, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    answer = json.loads(done.stdout)
    assert answer["status"] == "rescued" and answer["failure"] == "entropy-collapse"
    assert answer["go_back"]["checkpoint"].endswith("checkpoint-20")
    tried = {a["knob"]: a for a in answer["attempts"]}
    assert tried["temperature"]["outcome"] == "inconclusive", "hotter sampling delays it"
    assert tried["entropy_coef"]["outcome"] == "rescued"
    smoke = tried["entropy_coef"]["smoke"]
    assert smoke["one_knob"] and smoke["steps"]["first"] == 21, (
        "TRL's checkpoint-20 is after step 20"
    )
    assert smoke["mover"]["new"] > 1.5 * smoke["mover"]["control"]
