"""Labelled public runs, bug reports, tiny-trainer runs and samples: the shares named and left quiet."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pytest

READERS = "trl,verl,jsonl"
NAMED, QUIET = 0.80, 0.95


@pytest.fixture(scope="module")
def score(shared):
    spec = importlib.util.spec_from_file_location("score", shared / "bench" / "score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_named_and_quiet_per_kind(shared, score):
    from klinic.diagnose import diagnose_all
    from klinic.errors import KlinicError
    from klinic.render.as_json import as_dict

    named: dict[str, list[bool]] = {}
    quiet: dict[str, list[bool]] = {}
    for case in json.loads((shared / "bench" / "dev.json").read_text()):
        if case["reader"] not in READERS.split(",") or not case["strict"]:
            continue
        try:
            said = as_dict(diagnose_all(shared / case["path"])[0], "en")
        except KlinicError:
            said = {"status": "unclear", "failure": None, "findings": []}
        assert not [f for f in said["findings"] if f.get("crashed")], case["id"]
        if set(case["status"]) <= score.SICK:
            named.setdefault(case["kind"], []).append(not score.judge(case, said))
        elif "failing" not in case["status"]:
            quiet.setdefault(case["kind"], []).append(said["status"] != "failing")
    assert named and quiet
    for kind, right in named.items():
        assert sum(right) >= NAMED * len(right), kind
    for kind, right in quiet.items():
        assert sum(right) >= QUIET * len(right), kind


def test_ten_situations_in_every_format(shared, tmp_path):
    subprocess.run(
        [sys.executable, shared / "peers" / "gen_cases.py", tmp_path],
        check=True,
        capture_output=True,
    )
    from situations import FORMATS
    from situations import score as situations

    for form in FORMATS:
        found = situations(tmp_path, form)
        assert found["right"] == found["wanted"] == 24 and found["false"] == 0, found
        assert found["onset_median"] < 5, found
