"""A change against its control: real resumed runs of the lab, with a true cure, with none, and with what breaks."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from blocks import blocks_of, run_of

from klinic.compare.bearing import movers
from klinic.compare.harm import broke
from klinic.compare.settings import same
from klinic.compare.smoke import smoke
from klinic.diagnose import judge
from klinic.errors import BadUsage
from klinic.failures import cards
from klinic.lab.runs import resume, run
from klinic.read import read
from klinic.text import LANGUAGES, body

# The bad side of the curve that a change is judged by, for each failure that has a page with its curves: +1 where
# more of it is bad. This is derived from the evidence; here stands what a person would say.
BAD = {
    "entropy-collapse": ("entropy", -1),
    "entropy-explosion": ("entropy", 1),
    "gradient-lost": ("grad_norm", -1),
    "kl-runaway": ("kl", 1),
    "length-collapse": ("len", -1),
    "length-explosion": ("len", 1),
    "negative-kl": ("kl", -1),
    "no-learning": ("reward", -1),
    "ratio-stuck-at-one": ("ratio_mean", -1),
    "reference-mismatch": ("kl", 1),
    "reward-hacking": ("acc", -1),
    "staleness": ("ratio_geo", 1),
    "too-easy": ("zero_std", 1),
    "train-inference-mismatch": ("mismatch", 1),
    "truncated-from-start": ("trunc", 1),
    "truncation-rise": ("trunc", 1),
    "value-blowup": ("value_loss", 1),
    "zero-advantage": ("zero_std", 1),
}


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
    """A sync failure from step 30 on, and 20 steps from checkpoint-20 on: repaired, unchanged, and cut short."""
    place = tmp_path_factory.mktemp("lab")
    old = run(place / "old", "weight-sync-failure", seed=1, steps=80, at=30)
    point = old / "checkpoint-20"
    for seed in (1, 2):
        more = {"steps": 40, "reseed": seed, "checkpoint_every": 0}
        resume(point, place / f"fixed-{seed}", fix=("code",), **more)
        resume(point, place / f"control-{seed}", **more)
    resume(point, place / "same", steps=40, checkpoint_every=0)
    resume(point, place / "short", steps=12, fix=("code",), checkpoint_every=0)
    return place


@pytest.mark.parametrize("slug", sorted(BAD))
def test_the_bad_side_of_every_failure_is_read_off_its_evidence(slug):
    asked = 0
    for block in blocks_of(body(slug, "en")):
        found = judge(run_of(block, 0))
        if found.main is not None and found.main.failure == slug:
            asked += 1
            first = movers(found)[0]
            assert (first.metric, first.worse) == BAD[slug]
    assert asked


def test_every_failure_with_a_curve_has_something_to_be_judged_by():
    for slug, card in cards().items():
        for block in blocks_of(body(slug, "en")):
            found = judge(run_of(block, 0))
            if card.stage != "benign" and found.main is not None and found.main.failure == slug:
                evidence = [e for e in found.main.evidence if e.after is not None]
                assert movers(found) or not evidence, slug


def test_a_true_cure_is_better_beside_its_control(lab):
    found = smoke(
        lab / "old", [lab / "fixed-1", lab / "fixed-2"], [lab / "control-1", lab / "control-2"],
        steps=40, kind="fix-code",
    )  # fmt: skip
    assert (found.verdict, found.reason) == ("better", "mover-better")
    assert found.resamples == (2, 2) and not found.broke
    assert found.mover is not None and found.mover.new < found.mover.control


def test_two_resamples_of_one_configuration_are_inconclusive(lab):
    found = smoke(lab / "old", [lab / "control-1"], [lab / "control-2"], steps=40)
    assert found.verdict == "inconclusive" and not found.broke
    assert smoke(lab / "old", [lab / "control-1"], steps=40).verdict == "inconclusive"


def test_the_cure_taken_away_is_worse(lab):
    found = smoke(
        lab / "old", [lab / "control-1", lab / "control-2"], [lab / "fixed-1", lab / "fixed-2"], steps=40
    )  # fmt: skip
    assert (found.verdict, found.reason) == ("worse", "mover-worse")


def test_a_change_that_never_arrived_is_said_to(lab):
    found = smoke(lab / "old", [lab / "same"], steps=40)
    assert (found.verdict, found.reason) == ("inconclusive", "not-arrived")


def test_an_exact_replay_is_not_counted_as_a_second_control(lab):
    found = smoke(lab / "old", [lab / "fixed-1"], [lab / "same"], steps=40, include_old=True)
    assert found.resamples == (1, 1)


def test_a_seed_the_trainer_ignores_makes_no_second_resample(lab):
    fixed, control = lab / "fixed-1", lab / "control-1"
    found = smoke(lab / "old", [fixed, fixed], [control, control], steps=40)
    assert found.resamples == (1, 1)


def test_a_nan_in_the_changed_run_alone_is_worse(lab, tmp_path):
    rows = (lab / "fixed-1" / "metrics.jsonl").read_text().splitlines()
    spoilt = json.loads(rows[30]) | {"entropy": float("nan")}
    rows[30] = json.dumps(spoilt)
    (tmp_path / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    found = smoke(lab / "old", [tmp_path], steps=40)
    assert (found.verdict, found.reason) == ("worse", "lost")
    assert list(found.lost.values()) == [50]


def test_the_command_line_says_the_verdict_in_its_exit_code(lab):
    arms = ["--control", lab / "control-1", "--control", lab / "control-2", "--fixed", "code"]
    both = ["--also", lab / "fixed-2", "--steps", 40]
    done = ask("smoke", lab / "old", lab / "fixed-1", *both, *arms, "--format", "json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["verdict"] == "better"
    assert {"verdict", "steps", "changed", "mover", "broke", "notes"} <= answer.keys()
    assert {"metric", "old_change", "control_change", "new_change", "z"} <= answer["mover"].keys()
    assert answer["steps"] == {"first": 20, "last": 59, "count": 40, "asked": 40}
    assert ask("smoke", lab / "old", lab / "control-1", "--steps", 40).returncode == 3
    short = ask("smoke", lab / "old", lab / "short", "--steps", 40, "--lang", "en")
    assert "only 12 of the 40 steps" in short.stdout


@pytest.mark.parametrize("lang", LANGUAGES)
def test_text_fits_eighty_columns(lab, lang):
    for new in ("fixed-1", "control-1", "same", "short"):
        done = ask("smoke", lab / "old", lab / new, "--steps", 40, "--lang", lang)
        assert max(map(columns, done.stdout.splitlines())) <= 80 and "\x1b" not in done.stdout
        assert ("对照" in done.stdout) == (lang == "zh")
    markdown = ask("smoke", lab / "old", lab / "fixed-1", "--format", "markdown", "--lang", lang)
    assert markdown.stdout.startswith("## ")


def test_a_metric_may_be_named(lab):
    found = smoke(lab / "old", [lab / "fixed-1"], steps=40, metric="ratio_geo")
    assert found.toward is not None and found.toward.worse == 1, "judged by the distance from 1"
    with pytest.raises(BadUsage, match="bad on both sides"):
        smoke(lab / "old", [lab / "fixed-1"], metric="len", steps=40)
    assert ask("smoke", lab / "old", lab / "fixed-1", "--metric", "entrpy").stderr.count(
        "did you mean"
    )


def test_bad_usage_is_exit_code_two(lab, tmp_path):
    run(tmp_path / "well", seed=5, steps=12, checkpoint_every=0)
    done = ask("smoke", tmp_path / "well", lab / "fixed-1")
    assert done.returncode == 2 and "hint: " in done.stderr
    run(tmp_path / "late", "weight-sync-failure", seed=1, steps=12, at=0, checkpoint_every=0)
    assert ask("smoke", tmp_path / "late", lab / "fixed-1", "--metric", "kl").returncode == 2


def test_a_curve_that_jumps_and_falls_as_before_is_shifted_not_cured(tmp_path):
    rng = np.random.default_rng(3)

    def log(name, entropy, first=0):
        (tmp_path / name).mkdir()
        rows = [
            {"step": first + i, "entropy": float(e), "reward": float(0.4 + rng.normal(0, 0.01))}
            for i, e in enumerate(entropy)
        ]
        path = tmp_path / name / "metrics.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path.parent

    def fall(n, start, rate):
        return start * np.exp(-rate * np.arange(n)) * np.exp(rng.normal(0, 0.01, n))

    old = log("old", np.concatenate([fall(60, 1.5, 0.0), fall(80, 1.5, 0.04)]))
    assert judge(__import__("klinic").read(old)).main.failure == "entropy-collapse"
    shifted = log("shifted", fall(20, 2.2, 0.04), 60)
    cured = log("cured", fall(20, 1.5, 0.0), 60)
    assert smoke(old, [shifted], include_old=True).reason == "shifted"
    assert smoke(old, [cured]).verdict == "better"


def test_groups_that_are_all_right_are_no_harm(tmp_path):
    rng = np.random.default_rng(0)

    def log(name, first, n, acc, zero):
        rows = [
            {"step": first + i, "entropy": 1.0 + noise[0], "acc": acc(i) + noise[1],
             "frac_zero_std": zero(i) + noise[2]}
            for i, noise in enumerate(rng.normal(0, 0.01, (n, 3)))
        ]  # fmt: skip
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read(path)

    old = log("old", 0, 60, lambda i: 0.5, lambda i: 0.1)
    solved = log("solved", 40, 20, lambda i: 0.5 + 0.02 * i, lambda i: 0.1 + 0.02 * i)
    gone = log("gone", 40, 20, lambda i: 0.5 - 0.02 * i, lambda i: 0.1 + 0.02 * i)
    assert not broke(old, [old], [solved], 40, 59, ())
    assert {"zero_std", "acc"} <= {e.metric for e in broke(old, [old], [gone], 40, 59, ())}


def test_settings_are_compared_by_value():
    assert same(1, 1.0) and same("1e-3", 0.001) and same(True, "true") and not same(0.1, 0.2)
