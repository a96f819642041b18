"""Two runs side by side: real runs of the lab, and small logs for what the lab never does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest

import klinic
from klinic.compare.two_runs import compare
from klinic.lab.runs import resume, run
from klinic.text import LANGUAGES, sentences

SAME = ("healthy", "healthy-ppo", "no-learning-lr", "small-batch", "too-easy", "verifier-errors")


def ask(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "klinic", *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    place = tmp_path_factory.mktemp("lab")
    for seed in (1, 2):
        run(place / f"healthy-{seed}", seed=seed, steps=80, checkpoint_every=20)
    # On the same settings as the healthy runs up to the switch, the KL term among them.
    run(place / "runaway-1", "kl-runaway", seed=1, steps=80, at=20, checkpoint_every=20,
        changes={"beta": 0.05})  # fmt: skip
    resume(place / "healthy-1" / "checkpoint-20", place / "two", steps=60,
           changes={"lr": 0.003, "beta": 0.0})  # fmt: skip
    return place


def log(place: Path, name: str, **columns_of):
    """A small log of a hand-written loop. columns_of: key -> values."""
    place.mkdir(exist_ok=True)
    rows = zip(*columns_of.values(), strict=True)
    text = "".join(
        json.dumps({"step": i, **dict(zip(columns_of, row, strict=True))}) + "\n"
        for i, row in enumerate(rows)
    )
    (place / name).write_text(text)
    return place / name


def test_two_seeds_of_one_configuration_do_not_part(lab):
    found = compare(lab / "healthy-1", lab / "healthy-2")
    assert found.changed == () and found.common == 80 and found.same_until is None
    assert not found.partings
    assert {"reward", "entropy", "kl", "len"} <= set(found.together)


def test_a_fault_parts_first_where_it_was_switched(lab):
    found = compare(lab / "healthy-1", lab / "runaway-1")
    assert found.same_until == 19, "one seed: bitwise equal up to the switch"
    first = found.partings[0]
    assert {p.metric for p in found.partings} >= {"kl"}
    assert 20 <= first.step <= 40 and first.low <= first.step <= first.high


def test_several_settings_are_named_and_nothing_is_attributed(lab):
    found = compare(lab / "healthy-1", lab / "two")
    assert {c.knob for c in found.changed} == {"lr", "kl_coef"}
    assert found.first == 20 and found.last == 79, "common steps only"
    said = ask("compare", lab / "healthy-1", lab / "two", "--lang", "en").stdout
    assert "2 settings differ, so nothing below can be attributed" in said
    assert (
        json.loads(ask("compare", lab / "healthy-1", lab / "two", "--format", "json").stdout)[
            "attributable"
        ]
        is False
    )


def test_a_run_and_itself_are_identical(lab):
    found = compare(lab / "healthy-1", lab / "healthy-1")
    assert found.identical and found.same_until == 79 and not found.partings


def test_metrics_of_two_definitions_are_never_compared(tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, (2, 60))
    a = log(tmp_path / "a", "m.jsonl", kl=0.1 + noise[0], entropy=1.5 + noise[1])
    b = log(tmp_path / "b", "m.jsonl", kl_k1=3 + noise[1], entropy=1.5 + noise[0])
    found = compare(a, b)
    assert [u.role for u in found.unlike] == ["kl"]
    assert not found.partings and found.changed is None
    said = json.loads(ask("compare", a, b, "--format", "json").stdout)
    assert said["not_compared"][0]["a"]["name"] != said["not_compared"][0]["b"]["name"]


def test_a_step_is_dated_with_an_interval(tmp_path):
    rng = np.random.default_rng(1)
    level = np.where(np.arange(200) < 120, 1.5, 0.7)
    a = log(tmp_path / "a", "m.jsonl", entropy=1.5 + rng.normal(0, 0.03, 200))
    b = log(tmp_path / "b", "m.jsonl", entropy=level + rng.normal(0, 0.03, 200))
    (parting,) = compare(a, b).partings
    assert parting.low <= parting.step <= parting.high and abs(parting.step - 120) <= 4
    assert parting.a == pytest.approx(1.5, abs=0.1) and parting.b == pytest.approx(0.7, abs=0.1)


def test_two_logs_without_common_steps(tmp_path):
    a = log(tmp_path / "a", "m.jsonl", entropy=[1.0] * 20)
    b = tmp_path / "b.jsonl"
    b.write_text("".join(json.dumps({"step": 100 + i, "entropy": 1.0}) + "\n" for i in range(20)))
    done = ask("compare", a, b, "--lang", "en")
    assert done.returncode == 0 and "no step and no metric in common" in done.stdout


@pytest.mark.parametrize("lang", LANGUAGES)
def test_text_fits_eighty_columns(lab, lang):
    for other in ("healthy-2", "runaway-1", "two"):
        done = ask("compare", lab / "healthy-1", lab / other, "--lang", lang)
        assert done.returncode == 0 and "\x1b" not in done.stdout
        assert max(map(columns, done.stdout.splitlines())) <= 80
        assert ("步" in done.stdout) == (lang == "zh")
    assert ask("compare", lab / "healthy-1", lab / "two", "--format", "markdown").stdout.startswith(
        "## "
    )


def test_bad_input_is_one_line_and_exit_code_two(lab, tmp_path):
    for arguments in ((lab / "healthy-1", tmp_path / "none"), (lab / "healthy-1", lab)):
        done = ask("compare", *arguments)
        assert (
            done.returncode == 2 and done.stderr.startswith("error: ") and "hint: " in done.stderr
        )
    done = ask("compare", lab / "healthy-1", lab / "two", "--format", "jsn")
    assert done.returncode == 2 and "did you mean json?" in done.stderr


@pytest.mark.parametrize("package", ["advise", "compare", "rescue"])
def test_both_languages_have_the_same_sentences(package):
    en, zh = (sentences(package, lang) for lang in LANGUAGES)
    assert en.keys() == zh.keys()
    for key, text in en.items():
        assert set(re.findall(r"\{(\w+)\}", text)) == set(re.findall(r"\{(\w+)\}", zh[key])), key


def test_nothing_of_it_is_imported_by_diagnose():
    demo = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"
    code = (
        "import sys; from klinic.cli import main\n"
        f"sys.argv = ['klinic', 'diagnose', {str(demo)!r}]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert not [m for m in sys.modules if m.startswith(('klinic.compare', 'klinic.rescue'))]"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize("name", SAME)
def test_two_seeds_of_other_real_runs_do_not_part(shared, name):
    place = shared / "labruns" / name
    if not (place / "max-s2").exists():
        pytest.skip("this run is not beside the checkout")
    assert not compare(place / "max-s1", place / "max-s2").partings
