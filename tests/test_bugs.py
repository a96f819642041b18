"""Numbers that mislead, by version: told by klinic metrics and noted beside what rests on them, never found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import klinic
from klinic.advise.bugs import known_bugs
from klinic.diagnose import judge
from klinic.read import read
from klinic.run import Trainer
from klinic.trainers import tables
from klinic.trainers.recognise import recognise

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"


@pytest.mark.parametrize("name", [name for name, table in tables().items() if table.bugs])
def test_a_table_names_keys_that_it_knows(name: str) -> None:
    table = tables()[name]
    for bug in table.bugs:
        for key in bug.key.split():
            assert key.startswith("unread:") or table.rule(key) is not None, key
        for key in (*bug.keys, *bug.without):
            assert table.rule(key) is not None, key
        assert set(bug.knobs) <= set(table.knob), bug.key
        assert bug.en and bug.zh and bug.source
        assert bug.effect in ("converted", "left-out", "not-comparable", "noted")


@pytest.mark.parametrize(
    ("text", "version"),
    [("trl==0.26.2", "0.26.2"), ("TRL version: 1.10", ""), ("trl 1.16.0", "1.16.0"), ("", "")],
)
def test_the_version_is_read_from_the_log(text: str, version: str) -> None:
    assert recognise(["reward", "completions/mean_length"], text)[0].version == version


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.26.2", None), ("0.27.0", "in TRL 0.27 or later"), ("1.16.0", "in TRL 0.27 or later"), ("", "if your TRL is 0.27 or later")],
)  # fmt: skip
def test_a_bug_of_some_versions_is_told_for_those(version: str, told: str | None) -> None:
    run = read(DEMO)
    run = replace(run, trainer=Trainer("trl", "TRL", "test", version))
    texts = [k.text(run, "en") for k in known_bugs(run) if "reward_std" in k.key]
    assert bool(texts) == (told is not None)
    assert told is None or told in texts[0]
    assert all(k.text(run, "zh") for k in known_bugs(run))


@pytest.mark.parametrize(
    ("beside", "told"),
    [
        ({"perf/mfu/actor_infer": 0.4}, "in verl 0.7 to 0.8: added up over the minibatches"),
        ({"response/aborted_ratio": 0.0}, "in verl 0.6: divided by"),
        ({}, "if your verl is 0.1 to 0.4: the value of the last micro-batch alone"),
    ],
)
def test_a_bug_is_a_note_of_what_rests_on_the_number_and_no_finding(
    beside: dict[str, float], told: str, tmp_path: Path
) -> None:
    rows = []
    for step in range(60):
        gone = max(0, step - 30) / 30
        row = {"critic/score/mean": 0.6 - 0.4 * gone, "actor/entropy": 1.5 + 2 * gone}
        rows.append({"step": step, **row, "actor/kl_loss": 0.01 + 4 * gone**3, **beside})
    place = tmp_path / "a.jsonl"
    place.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    answer = judge(read(place, trainer="verl"))
    assert answer.main is not None and answer.main.failure == "kl-runaway"
    noted = [note.values for note in answer.notes if note.sentence == "note.bug"]
    assert any(told in note["en"] for note in noted), noted
    assert all(note["zh"] for note in noted)
