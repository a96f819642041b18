"""The rescue of real runs of the lab: as such, through a command template, and killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest

from klinic.diagnosis import Action
from klinic.errors import BadUsage
from klinic.lab.runs import run
from klinic.rescue.further import further
from klinic.rescue.ledger import Ledger
from klinic.rescue.plan import Treatment
from klinic.rescue.process import execute, failed, partial
from klinic.rescue.template import template
from klinic.text import LANGUAGES
from klinic.trainers import tables

NEED = {"out", "checkpoint"}

# A trainer as people write them: its own flags, one line a step on standard output, and no other log.
TRAINER = """
import argparse, sys
from klinic.lab.runs import resume
parser = argparse.ArgumentParser()
for name in ("--resume", "--out", "--fix", "--lie"):
    parser.add_argument(name)
parser.add_argument("--until", type=int)
parser.add_argument("--seed", type=int)
parser.add_argument("settings", nargs="*")
asked = parser.parse_args()
if asked.lie == "crash" and asked.settings:
    sys.exit("out of luck")
first = int(asked.resume.rsplit("-", 1)[1])
changes = {} if asked.lie == "deaf" else dict(s.split("=") for s in asked.settings)
changes = {name: value for name, value in changes.items() if name != "updates_per_batch"}
def line(row):
    print(" ".join(f"{k}={row[k]}" for k in ("step", "reward", "acc", "entropy", "kl", "len", "frac_zero_std")))
scratch = asked.out + ".work"
resume(asked.resume, scratch, steps=asked.until - first, changes=changes,
       fix=[asked.fix] if asked.fix else [], reseed=asked.seed, checkpoint_every=0, progress=line)
import shutil
shutil.rmtree(scratch)
"""


def ask(*arguments, cwd=None):
    done = subprocess.run(
        [sys.executable, "-m", "klinic", *map(str, arguments)],
        capture_output=True, text=True, encoding="utf-8", cwd=cwd,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def events(folder):
    return [json.loads(line) for line in (folder / "ledger.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def sick(tmp_path_factory):
    """A weight sync that breaks at step 30."""
    place = tmp_path_factory.mktemp("sick") / "run"
    return run(place, "weight-sync-failure", seed=1, steps=80, at=30)


@pytest.fixture(scope="module")
def rescued(sick):
    folder = sick.with_name("run-rescue")
    before = {path: path.stat().st_mtime_ns for path in sick.rglob("*")}
    done = ask("rescue", sick, "--on", 40, "--format", "json")
    assert {path: path.stat().st_mtime_ns for path in sick.rglob("*")} == before
    return folder, done


def test_a_lab_run_is_rescued(rescued):
    folder, done = rescued
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and answer["status"] == "rescued", done.stdout
    assert answer["failure"] == "weight-sync-failure" and answer["go_back"]["before_onset"]
    (attempt,) = answer["attempts"]
    assert attempt["kind"] == "fix-code" and attempt["outcome"] == "rescued"
    assert attempt["smoke"]["resamples"] == {"control": 3, "new": 2}, "the old run is a control too"
    assert (Path(attempt["folder"]) / "metrics.jsonl").exists()
    told = [event["event"] for event in events(folder)]
    assert told[0] == "begin" and told[-1] == "end" and told.count("ran") == 5
    ran = next(event for event in events(folder) if event["event"] == "ran")
    assert {"at", "command", "folder", "exit", "seconds", "seed", "role"} <= ran.keys()


def test_asked_again_it_runs_nothing_twice(sick, rescued):
    folder, _ = rescued
    before = events(folder)
    again = ask("rescue", sick, "--on", 40, "--format", "json")
    assert json.loads(again.stdout)["status"] == "rescued"
    assert events(folder) == before


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_summary_fits_eighty_columns(sick, rescued, lang):
    said = ask("rescue", sick, "--on", 40, "--lang", lang).stdout
    lines = [line for line in said.splitlines() if str(sick.parent) not in line]
    assert max(map(columns, lines)) <= 80 and "\x1b" not in said
    assert ("救回来了" in said) == (lang == "zh")


def wait_for(there, seconds=60.0):
    limit = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_in_the_middle_it_goes_on_where_it_was(sick, tmp_path, how):
    folder = tmp_path / "rescue"
    words = [sys.executable, "-m", "klinic", "rescue", str(sick), "-o", str(folder), "--on", "40"]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A test run in the background inherits an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Killed while the second run trains: one is finished, one is half done.
    wait_for(
        lambda: list(folder.glob("*/*.part/metrics.jsonl")) and list(folder.glob("control*/1"))
    )
    child = json.loads((folder / "running.json").read_text())["pid"]
    os.kill(process.pid, how)
    process.communicate()
    finished = {p: p.stat().st_mtime_ns for p in folder.glob("*/[0-9]/metrics.jsonl")}
    assert finished
    with open(folder / "ledger.jsonl", "a") as stream:
        stream.write('{"event": "half a li')  # what a kill in the middle of a write leaves
    if how == signal.SIGINT:
        assert process.returncode == 130 and not Path(f"/proc/{child}").exists()
    done = ask("rescue", sick, "-o", folder, "--on", 40, "--format", "json")
    assert json.loads(done.stdout)["status"] == "rescued", done.stderr
    assert {p: p.stat().st_mtime_ns for p in finished} == finished, (
        "a finished run is not run again"
    )
    assert not list(folder.glob("*/*.part")) and not (folder / "running.json").exists()
    assert not Path(f"/proc/{child}").exists(), "nothing is left running"
    ran = [e["folder"] for e in Ledger(folder).events if e["event"] == "ran"]
    assert len(ran) == len(set(ran)) == 5
    assert any(e["event"] == "thrown-away" for e in Ledger(folder).events)


def test_two_rescues_of_one_folder_do_not_run_at_once(sick, tmp_path):
    folder = tmp_path / "rescue"
    words = [sys.executable, "-m", "klinic", "rescue", str(sick), "-o", str(folder), "--on", "40"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: (folder / "ledger.jsonl").exists())
    second = ask("rescue", sick, "-o", folder)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert second.returncode == 2 and "another rescue is going on" in second.stderr


@pytest.fixture(scope="module")
def collapse(tmp_path_factory):
    """An entropy collapse under a hand-written trainer: a console log and checkpoints, and the trainer itself."""
    place = tmp_path_factory.mktemp("own")
    real = run(place / "real", "entropy-collapse", seed=3, steps=100, at=20, strength="strong")
    own = place / "run"
    own.mkdir()
    keys = ("step", "reward", "acc", "entropy", "kl", "len", "frac_zero_std")
    with open(own / "train.log", "w") as stream:
        for text in (real / "metrics.jsonl").read_text().splitlines():
            row = json.loads(text)
            stream.write(" ".join(f"{k}={row[k]}" for k in keys) + "\n")
    for point in real.glob("checkpoint-*"):
        shutil.copytree(point, own / point.name)
    (own / "config.yaml").write_text("entropy_coef: -0.0\ntemperature: 1.0\nlr: 0.0007\n")
    (place / "trainer.py").write_text(TRAINER)
    return own


CALL = "{python} trainer.py --resume {checkpoint} --out {out} --until {until} --seed {seed} {flag}={value}"


def test_any_trainer_is_rescued_through_a_command(collapse):
    done = ask(
        "rescue", collapse, "--command", CALL, "--resamples", 2, "--on", 40, "--format", "json",
        cwd=collapse.parent,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert answer["status"] == "rescued", done.stdout + done.stderr
    cured = answer["attempts"][-1]
    assert cured["knob"] == "entropy_coef" and cured["outcome"] == "rescued"
    assert all(a["outcome"] in ("inconclusive", "not-arrived") for a in answer["attempts"][:-1])
    assert (Path(cured["folder"]) / "train.log").exists(), (
        "the output is the log where there is no other"
    )
    control = next(
        e for e in events(collapse.with_name("run-rescue")) if e.get("role") == "control"
    )
    assert not any("=" in word for word in control["command"]), "the control is given no change"


def test_a_change_the_trainer_does_not_hear_is_not_counted_as_tried(collapse, tmp_path):
    done = ask(
        "rescue", collapse, "-o", tmp_path / "r", "--command", CALL + " --lie deaf", "--format", "json",
        cwd=collapse.parent,
    )  # fmt: skip
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and {a["outcome"] for a in answer["attempts"]} == {"not-arrived"}
    told = next(e for e in events(tmp_path / "r") if e["event"] == "not-arrived")
    assert told["why"] == "identical"


def test_a_failing_command_is_told_and_the_next_change_is_tried(collapse, tmp_path):
    done = ask(
        "rescue", collapse, "-o", tmp_path / "r", "--command", CALL + " --lie crash", "--lang", "en",
        cwd=collapse.parent,
    )  # fmt: skip
    assert done.returncode == 1 and "command failed" in done.stdout and "out of luck" in done.stderr
    bad = [e for e in events(tmp_path / "r") if e["event"] == "ran" and e["exit"]]
    assert (
        bad and bad[0]["last_lines"][-1] == "out of luck" and bad[0]["folder"].endswith(".failed")
    )
    words = [
        "rescue",
        collapse,
        "-o",
        tmp_path / "r",
        "--command",
        CALL + " --lie crash",
        "--lang",
        "en",
    ]
    again = ask(*words, cwd=collapse.parent)
    assert "failed before (exit 1)" in again.stderr and "--retry" in again.stdout
    now = [e for e in events(tmp_path / "r") if e["event"] == "ran" and e["exit"]]
    assert now == bad, "a command that failed is not run again unasked"
    ask(*words, "--retry", cwd=collapse.parent)
    now = [e for e in events(tmp_path / "r") if e["event"] == "ran" and e["exit"]]
    assert len(now) == 2 * len(bad)


def test_a_failing_control_ends_it_with_its_last_lines(collapse, tmp_path):
    call = "{python} nowhere.py --resume {checkpoint} --out {out} --until {until} {flag}={value}"
    done = ask("rescue", collapse, "-o", tmp_path / "r", "--command", call, cwd=collapse.parent)
    assert done.returncode == 2 and "exit code 2" in done.stderr and "nowhere.py" in done.stderr
    call = call.replace("{python}", "no-such-program")
    done = ask("rescue", collapse, "-o", tmp_path / "s", "--command", call, cwd=collapse.parent)
    assert done.returncode == 2 and done.stderr.startswith(
        "error: no-such-program: cannot be started"
    )


def test_what_is_no_flag_is_left_to_a_person(tmp_path):
    """A verifier that fails: no knob cures it, and this trainer has no command that does."""
    real = run(tmp_path / "real", "verifier-error", seed=2, steps=120, at=60)
    own = tmp_path / "run"
    own.mkdir()
    keys = ("step", "reward", "acc", "entropy", "kl", "len", "frac_zero_std", "verifier_err")
    rows = [json.loads(line) for line in (real / "metrics.jsonl").read_text().splitlines()]
    with open(own / "train.log", "w") as stream:
        for row in rows:
            stream.write(" ".join(f"{k}={row[k]}" for k in keys) + "\n")
    for point in real.glob("checkpoint-*"):
        shutil.copytree(point, own / point.name)
    (tmp_path / "trainer.py").write_text(TRAINER)
    done = ask("rescue", own, "--lang", "en", cwd=tmp_path)
    assert done.returncode == 3 and "a person is needed first" in done.stdout, done.stdout
    said = " ".join(done.stdout.split())  # a hint may be broken over two lines
    assert "--continue NEWRUN" in said and "--fix-command" in said
    from klinic.lab.runs import resume

    new = resume(
        own / "checkpoint-40", tmp_path / "new", steps=80, fix=("code",), checkpoint_every=0
    )
    done = ask("rescue", own, "--continue", new, "--lang", "en", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("rescued"), done.stdout
    assert [e["status"] for e in events(tmp_path / "run-rescue") if e["event"] == "end"] == [
        "person", "rescued",
    ]  # fmt: skip


def test_a_healthy_run_is_left_alone(tmp_path):
    run(tmp_path / "well", seed=5, steps=30, checkpoint_every=0)
    done = ask("rescue", tmp_path / "well", "--lang", "en")
    assert done.returncode == 0 and "nothing to rescue" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["well"]


def test_a_run_that_forgets_is_judged_by_the_evaluation_that_fell(tmp_path):
    from klinic.diagnose import diagnose
    from klinic.rescue.plan import plan

    run(tmp_path / "run", "eval-regression", seed=4, steps=120, at=0)
    found = diagnose(tmp_path / "run", only=["eval-regression"])
    assert found.main is not None
    made = plan(found, steps=20, can_fix=True)
    assert made.toward is not None and made.toward.metric.startswith("eval/")
    assert made.steps >= 60, "an evaluation every ten steps needs at least six of them"


def test_a_dry_run_writes_nothing(sick, tmp_path):
    done = ask("rescue", sick, "-o", tmp_path / "r", "--dry-run", "--lang", "en")
    assert done.returncode == 0 and "fix-code" in done.stdout and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "{run}/inside"], "the run's own folder"),
        (["--command", "train {checkpoint} {out}"], "nothing says when the run ends"),
        (["--command", "train {checkpoint} {steps} {flag}={value}"], "does not hold {out}"),
        (["--command", "train {out} {steps} {flag}={value}"], "does not hold {checkpoint}"),
        (["--command", "train {checkpont} {out} {steps}"], "did you mean checkpoint?"),
        (["--command", 'train "{checkpoint} {out}'], "close the quote"),
        (["--checkpoint", "checkpoint-7"], "did you mean checkpoint-"),
        (["-o", "{run}/.."], "holds no rescue"),
    ],
)
def test_misuse_is_exit_code_two(sick, arguments, said):
    done = ask("rescue", sick, *(a.replace("{run}", str(sick)) for a in arguments))
    assert done.returncode == 2 and said in done.stderr and "hint: " in done.stderr


def test_words_of_the_change_are_left_out_of_the_control():
    values = {"checkpoint": "C", "out": "O", "steps": "20", "until": "60", "seed": "1",
              "flag": "--beta", "value": "0.1", "change": "--beta 0.1"}  # fmt: skip
    cases = {
        "t --set {flag}={value} -c {checkpoint} -o {out} -n {steps}": "t --set -c C -o O -n 20",
        "t {flag} {value} -c {checkpoint} -o {out} -n {steps}": "t -c C -o O -n 20",
        "t {change} -c {checkpoint} -o {out} -n {steps}": "t -c C -o O -n 20",
    }
    for text, control in cases.items():
        assert " ".join(template(text, "--command", NEED).filled(values, change=False)) == control
    # An override that is no option takes the option word before it along.
    plain = values | {"flag": "beta", "change": "beta=0.1"}
    found = template(
        "t --set {flag}={value} -c {checkpoint} -o {out} -n {steps}", "--command", NEED
    )
    assert found.filled(plain, change=False) == ["t", "-c", "C", "-o", "O", "-n", "20"]
    assert found.filled(plain)[:3] == ["t", "--set", "beta=0.1"]
    change = template("t {change} -c {checkpoint} -o {out} -n {steps}", "--command", NEED)
    assert change.filled(values)[:3] == ["t", "--beta", "0.1"]
    assert "C" not in change.filled(values, checkpoint=False) and "-c" not in change.filled(
        values, checkpoint=False
    )
    with pytest.raises(BadUsage):
        template("", "--command", NEED)


def test_a_run_that_takes_too_long_is_ended(tmp_path):
    out = tmp_path / "arm" / "1"
    began = time.monotonic()
    done = execute(["sh", "-c", "echo begun; sleep 60 & sleep 60"], out, timeout=1.0)
    assert done.exit is None and done.tail == ("begun",) and time.monotonic() - began < 15
    assert failed(out).exists() and not out.exists() and not partial(out).exists()
    assert execute(["sh", "-c", f"mkdir -p {partial(out)}"], out).well and out.exists()


def test_a_number_is_turned_further_the_same_way():
    def turned(knob, old, new, times):
        action = Action("set", knob, knob, old, new, f"{knob}={new}", "must", "action.lr", "x")
        found = further(Treatment("2-x", "set", action, ""), times, tables()["generic"])
        return found and (found.action.new, found.name, found.action.command)

    assert turned("lr", 0.008, 0.004, 1) == (0.001, "2-lr-0.001", "lr=0.001")
    assert turned("lr", 0.008, 0.004, 2)[0] == 0.00025
    assert turned("lr", 1e-7, 1e-6, 2)[0] == 1e-4
    assert turned("kl_coef", 0.0, 0.005, 1)[0] == 0.05
    assert turned("entropy_coef", -0.3, 0.0, 1) is None, "a wrong sign has no further"
    assert turned("temperature", 1.0, 1.1, 1) is None


@pytest.mark.parametrize(("fault", "flag"), [("nan", "loss_scale"), ("no-learning-lr", "lr")])
def test_a_first_value_that_is_too_small_is_turned_further(tmp_path, fault, flag):
    run(tmp_path / "run", fault, seed=1, steps=60)
    done = ask("rescue", tmp_path / "run", "--on", 40, "--format", "json")
    answer = json.loads(done.stdout)
    assert answer["status"] == "rescued", done.stdout
    assert answer["attempts"][0]["flag"] == flag
    cured = next(a for a in answer["attempts"] if a["outcome"] == "rescued")
    assert cured["flag"] == flag and (flag != "lr" or cured["new"] >= 1e-5)
