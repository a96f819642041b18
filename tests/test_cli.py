"""The command line as a user runs it: output, exit codes, errors, languages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import jsonschema
import pytest

import klinic

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"


def ask(*arguments, stdin=None, **environment):
    env = {
        k: v
        for k, v in os.environ.items()
        if k not in ("LANG", "LC_ALL", "LC_MESSAGES", "FORCE_COLOR", "KLINIC_TRACEBACK")
    }
    return subprocess.run(
        [sys.executable, "-m", "klinic", *map(str, arguments)],
        capture_output=True,
        text=True,
        input=stdin,
        env={**env, **environment},
        encoding="utf-8",
    )


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.fixture(scope="module")
def answer():
    done = ask("diagnose", DEMO, "--format", "json")
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


def test_the_real_run_is_named_dated_and_treated(answer):
    assert (answer["status"], answer["failure"], answer["severity"]) == (
        "failing",
        "entropy-collapse",
        "stop",
    )
    assert 38 <= answer["onset"]["step"] <= 55, "the entropy term changed its sign at step 41"
    assert answer["run"]["trainer"] == "trl" and answer["run"]["steps"] == {
        "first": 1,
        "last": 140,
        "logged": 140,
    }
    assert (
        answer["roll_back_to"]["checkpoint"] == "checkpoint-40"
        and answer["roll_back_to"]["complete"]
    )
    assert answer["first_action"]["command"] == "--temperature 1.1"
    status = {f["failure"]: f["status"] for f in answer["findings"]}
    assert status["kl-runaway"] == status["reward-hacking"] == "ruled_out"
    assert status["weight-sync-failure"] == "not_checked", "without a gauge it cannot be excluded"


def test_the_answer_keeps_the_contract(answer):
    schema = json.loads(ask("schema").stdout)
    jsonschema.validate(answer, schema)
    jsonschema.validate(
        json.loads(ask("diagnose", DEMO, DEMO / "stdout.log", "--format", "json").stdout), schema
    )
    chinese = json.loads(ask("diagnose", DEMO, "--format", "json", "--lang", "zh").stdout)
    jsonschema.validate(chinese, schema)
    for a, b in zip(answer["findings"], chinese["findings"], strict=True):
        assert [(e["sentence"], e["values"]) for e in a["evidence"]] == [
            (e["sentence"], e["values"]) for e in b["evidence"]
        ]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_text_fits_eighty_columns_without_colour(lang):
    done = ask("diagnose", DEMO, "--lang", lang)
    assert "\x1b" not in done.stdout and done.stdout.startswith("entropy-collapse")
    assert max(columns(line) for line in done.stdout.splitlines()) <= 80
    assert "\x1b[1;31m" in ask("diagnose", DEMO, "--lang", lang, FORCE_COLOR="1").stdout
    assert ("熵" in done.stdout) == (lang == "zh")


def test_language_comes_from_the_locale():
    assert "立即停" in ask("diagnose", DEMO, LANG="zh_CN.UTF-8").stdout


def test_markdown_github_and_a_file(tmp_path):
    assert ask("diagnose", DEMO, "--format", "markdown").stdout.startswith("## entropy-collapse")
    assert ask("diagnose", DEMO, "--format", "github").stdout.startswith("::error title=")
    out = tmp_path / "answer.md"
    done = ask("diagnose", DEMO, "--format", "markdown", "-o", out)
    assert (
        done.stdout == ""
        and out.read_text().startswith("## entropy-collapse")
        and len(list(tmp_path.iterdir())) == 1
    )
    assert ask("diagnose", DEMO, "-o", tmp_path / "no" / "where.txt").returncode == 2


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_plot_writes_a_png(tmp_path, lang):
    out = tmp_path / "curves.png"
    done = ask("plot", DEMO, "-o", out, "--lang", lang)
    assert done.returncode == 0, done.stderr
    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n" and out.stat().st_size > 20_000


def test_explain_and_metrics():
    assert "What rules it out" in ask("explain", "entropy-collapse").stdout
    assert "什么能排除它" in ask("explain", "entropy_collapse", "--lang", "zh").stdout
    kl = ask("explain", "kl").stdout
    assert "--beta 0.001" in kl and "use_kl_loss" in kl
    assert "entropy-collapse" in ask("explain").stdout
    listed = ask("metrics", DEMO).stdout
    assert "groups/zero_std_frac" in listed and "--num_generations = 8" in listed
    assert "mismatch" in ask("metrics", DEMO, "--missing").stdout


def test_standard_input_and_exit_codes(tmp_path):
    healthy = "".join(
        f"[{i}] reward={0.4 + i / 300:.4f} acc={20 + i / 6:.2f}% entropy={1.8 - i / 600:.3f} kl={i / 4000:.5f} adv_std=0.9 clip=0.01 ratio=1.0 len={80 + i / 3:.0f}\n"
        for i in range(1, 201)
    )
    done = ask("diagnose", "-", stdin=healthy)
    assert done.returncode == 0 and done.stdout.startswith("healthy"), done.stdout
    (tmp_path / "other.log").write_text("nothing to see\n" * 30)
    done = ask("diagnose", tmp_path / "other.log")
    assert done.returncode == 3 and "no metrics found" in done.stdout and "30 lines" in done.stdout
    assert ask("diagnose", DEMO, "--only", "kl-runaway").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says", "hint"),
    [
        (("diagnose", "nowhere.log"), "no such file", "check the path"),
        (("diagnoze", "x"), "unknown verb", "diagnose"),
        (("diagnose", DEMO, "--only", "entropy-colapse"), "unknown failure", "entropy-collapse"),
        (("diagnose", DEMO, "--format", "jsn"), "unknown format", "json"),
        (("diagnose", DEMO, "--trainer", "tlr"), "unknown trainer", "trl"),
        (("explain", "entropi"), "unknown failure or metric", "entropy"),
        (("diagnose",), "RUN", ""),
        (("diagnose", DEMO, "--config", "none.yaml"), "cannot be read", "--config"),
    ],
)
def test_misuse_is_one_line_and_a_hint(arguments, says, hint):
    done = ask(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert says in done.stderr and hint in done.stderr and done.stdout == ""


def test_an_error_on_the_json_path_is_json(tmp_path):
    (tmp_path / "x.log").write_bytes(b"\x1f\x8b\x08")
    done = ask("diagnose", tmp_path / "x.log", "--format", "json")
    error = json.loads(done.stdout)["error"]
    assert (
        done.returncode == 2
        and "gzip" in error["what"]
        and error["where"].endswith("x.log")
        and error["hint"]
    )


def test_diagnose_imports_nothing_heavy():
    code = (
        "import sys, klinic\n"
        "assert 'numpy' not in sys.modules\n"
        f"answer = klinic.diagnose({str(DEMO)!r})\n"
        "from klinic.render.text import render\nrender([answer], 'en')\n"
        "from klinic.render.as_json import render\nrender([answer], 'en')\n"
        "heavy = {'torch', 'scipy', 'matplotlib', 'duckdb', 'pandas', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert callable(klinic.read) and callable(klinic.diagnose)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_explain_does_not_import_numpy():
    code = "import sys; sys.argv = ['klinic', 'explain', 'entropy-collapse']\nfrom klinic.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\nassert 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


@pytest.mark.parametrize(("readme", "lang"), [("README.md", "en"), ("README.zh.md", "zh")])
def test_the_readme_shows_what_klinic_says(readme, lang):
    path = Path(__file__).resolve().parent.parent / readme
    block = path.read_text(encoding="utf-8").partition("    $ klinic diagnose")[2].split("\n", 1)[1]
    shown = [
        line.strip()
        for line in block.split("\n\nThe run is real")[0].split("\n\n这次训练")[0].splitlines()
    ]
    said = ask("diagnose", DEMO, "--lang", lang).stdout
    wanted = [line for line in shown if line not in ("", "...", "……")]
    assert len(wanted) >= 7
    assert not [line for line in wanted if line not in said]
