"""Where guides disagree, the run decides and one line says so; a healthy run hears of none of it."""

from __future__ import annotations

import pytest
from blocks import parse, run_of

from klinic.diagnose import judge
from klinic.text import LANGUAGES, say

HEALTHY = {
    "reward": "0.40 -> 0.60",
    "acc": "0.40 -> 0.60",
    "entropy": "1.60 -> 1.40",
    "kl": "0.001 -> 0.03",
    "len": "80 -> 90",
    "trunc": "0.01",
    "clip_frac": "0.02",
    "zero_std": "0.05",
}
COLLAPSE = {"entropy": "1.60 -> 0.02 from 60", "acc": "0.4", "reward": "0.4"}
EXPLOSION = {
    "len": "80 -> 300 from 60",
    "trunc": "0.01 -> 0.6 from 60",
    "acc": "0.5 -> 0.2 from 80",
    "reward": "0.5 -> 0.2 from 80",
}
HACKED = {"reward": "0.40 -> 1.20 from 60", "acc": "0.40 -> 0.10 from 60"}
RUNAWAY = {
    "kl": "0.005 -> 4.5 from 105 to 125",
    "acc": "0.45 -> 0.08 from 115 to 170",
    "reward": "0.45 -> 0.08 from 115 to 170",
}


def said(curves: dict[str, str], seed: int = 1) -> dict[str, dict[str, object]]:
    lines = [f"{name} {line}" for name, line in {**HEALTHY, **curves}.items()]
    answer = judge(run_of(parse("\n".join(["step 0 .. 200 noise 2 % ar 0.3", *lines])), seed))
    found = [n for n in answer.notes if n.sentence.startswith("dispute.")]
    for note in found:
        for lang in LANGUAGES:
            assert "{" not in say(note.sentence, lang, **note.values)
    return {n.sentence.removeprefix("dispute."): n.values for n in found}


def test_a_healthy_run_hears_nothing():
    assert said({}) == {}


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        ({**COLLAPSE, "zero_std": "0.05 -> 0.6 from 70"}, "collapse-open"),
        ({**COLLAPSE, "zero_std": "0.05 -> 0.98 from 70"}, "collapse-closed"),
        ({**COLLAPSE, "zero_std": "0.05 -> 0.98 from 70", "clip_frac": "0.05"}, "collapse-clips"),
        (EXPLOSION, "length-unknown"),
        ({**EXPLOSION, "len_right": "80", "len_wrong": "80 -> 320 from 60"}, "length-wrong"),
        (
            {**EXPLOSION, "len_right": "80 -> 300 from 60", "len_wrong": "80 -> 320 from 60"},
            "length-both",
        ),
        (HACKED, "kl-no-cure"),
        ({**RUNAWAY, "entropy": "1.6 -> 3.2 from 110 to 160"}, "kl-noise"),
        ({"entropy": "0.25 -> 0.25"}, "entropy-level"),
        ({"trunc": "0.08 -> 0.12"}, "trunc-level"),
    ],
)
def test_the_run_decides(curves, expected):
    assert expected in said(curves)


def test_lengths_of_wrong_answers_alone_speak_against_even_weights():
    values = said({**EXPLOSION, "len_right": "80", "len_wrong": "80 -> 320 from 60"})[
        "length-wrong"
    ]
    assert values["wrong"] > 3 and values["right"] < 1.1
