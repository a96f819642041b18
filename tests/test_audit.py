"""The audit of reward functions: planted holes are found, strict functions come out clean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HOLES = Path(__file__).parent / "rewards" / "holes.py"


def rows() -> list[dict]:
    return [
        {"prompt": f"Ann has {a} apples and buys {b} more. How many has she?", "answer": str(a + b)}
        for a, b in ((3, 4), (12, 31), (40, 19), (7, 8), (22, 5), (61, 30), (9, 9), (14, 70))
    ]


def audit(name: str, tmp_path: Path, *given: str) -> tuple[int, dict]:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    out = subprocess.run(
        [sys.executable, "-m", "klinic", "audit-reward", f"{HOLES}:{name}", "--data", str(data), "--format", "json", *given],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert out.returncode in (0, 1), out.stderr
    return out.returncode, json.loads(out.stdout)


@pytest.mark.parametrize(
    ("name", "convention", "forms"),
    [
        ("last_number", "trl", {"extractor"}),
        ("any_listed", "verl", {"candidates"}),
        ("lenient", "plain", {"nothing"}),
        ("judge", "plain", {"flattery", "padding"}),
        ("tags", "plain", {"empty-format"}),
    ],
)
def test_planted_holes_are_found(name, convention, forms, tmp_path):
    code, found = audit(name, tmp_path)
    assert code == 1
    assert found["convention"]["name"] == convention
    assert forms <= {hole["form"] for hole in found["holes"]}
    assert all(hole["example"] is not None and hole["share"] > 0 for hole in found["holes"])


@pytest.mark.parametrize("name", ["strict_tag", "strict_boxed"])
def test_strict_functions_come_out_clean(name, tmp_path):
    code, found = audit(name, tmp_path)
    assert (code, found["holes"]) == (0, [])
    assert found["honest"]["right"] == 1


def test_a_call_that_never_ends_is_a_finding(tmp_path):
    _, found = audit("hangs", tmp_path, "--timeout", "0.2", "--limit", "12")
    assert "hung" in {trouble["kind"] for trouble in found["troubles"]}


def test_labelled_answers_give_false_positives_and_negatives(tmp_path):
    data = tmp_path / "labelled.jsonl"
    told = [
        {"completion": "it is 99, no, <answer>7</answer>", "right": True},
        {"completion": "<answer>seven</answer>", "right": True},
        {"completion": "<answer>8</answer> or 7", "right": False},
        {"completion": "<answer>8</answer>", "right": False},
    ]
    data.write_text(
        "".join(json.dumps({"prompt": "3+4?", "answer": "7", **row}) + "\n" for row in told)
    )
    out = subprocess.run(
        [sys.executable, "-m", "klinic", "audit-reward", f"{HOLES}:last_number", "--data", str(data), "--format", "json"],
        capture_output=True,
        text=True,
    )  # fmt: skip
    found = json.loads(out.stdout)["labelled"]
    assert (len(found["paid"]), found["wrong"]) == (1, 2)
    assert (len(found["unpaid"]), found["right"]) == (1, 2)


def test_wrong_use_is_said_clearly(tmp_path):
    data = tmp_path / "d.jsonl"
    data.write_text('{"prompt": "1+1?", "answer": "2"}\n')
    for given, part in (
        ((f"{HOLES}:nothing_there", "--data", str(data)), "no function"),
        (("nowhere.py:f", "--data", str(data)), "no such file"),
        ((f"{HOLES}:last_number", "--data", str(tmp_path / "none.jsonl")), "no such file"),
        ((f"{HOLES}:last_number", "--data", str(data), "--map", "answr=x"), "did you mean"),
    ):
        out = subprocess.run(
            [sys.executable, "-m", "klinic", "audit-reward", *given, "--lang", "en"],
            capture_output=True,
            text=True,
        )
        assert out.returncode == 2 and part in out.stderr, out.stderr
        assert "Traceback" not in out.stderr
