"""The report as one file: what it holds, that it loads nothing, how large it gets."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import klinic
from klinic.render.report.encode import Encoder, extremes, grid
from klinic.run import Curve, Metric
from klinic.vitals import VITALS

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"


def written(*args: str, code: int | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "klinic", *args], capture_output=True, text=True, encoding="utf-8"
    )
    assert code is None or done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("report") / "report.html"
    written("diagnose", str(DEMO), "-o", str(place), code=1)
    return place.read_text(encoding="utf-8")


def data_of(page: str) -> list[dict[str, object]]:
    found = re.search(
        r'<script type="application/json" id="klinic-data">(.*?)</script>', page, re.S
    )
    assert found
    loaded: list[dict[str, object]] = json.loads(found.group(1))
    return loaded


def test_loads_nothing_and_lets_nothing_run_but_its_own_script(report: str) -> None:
    assert not re.search(r"<(?:link|img|iframe|script)[^>]+(?:src|href)=", report)
    assert "url(" not in re.sub(r"<script>.*?</script>", "", report, flags=re.S)
    assert not re.search(r"\son\w+=", re.sub(r"<script>.*?</script>", "", report, flags=re.S))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', report)
    script = re.findall(r"<script>(.*?)</script>", report, re.S)
    assert policy and len(script) == 1
    digest = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy.group(1)
    assert policy.group(1).startswith("default-src 'none'")


def test_the_vendored_plotter_is_what_it_says() -> None:
    folder = Path(klinic.__file__).parent / "render" / "assets" / "uplot"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_holds_the_four_answers_in_both_languages(report: str) -> None:
    (document,) = data_of(report)
    answers = document["answers"]
    assert isinstance(answers, dict)
    assert answers["title"] == {"en": "Entropy collapse", "zh": "熵崩塌"}
    assert answers["change"]["command"] == "--temperature 1.1"
    assert "checkpoint-40" in answers["back"]["en"]
    assert [p["role"] for p in document["panels"]] == list(VITALS)
    words = document["words"]
    assert isinstance(words, dict) and set(words["en"]) == set(words["zh"])


def test_samples_only_where_they_are_asked_for(tmp_path: Path) -> None:
    hostile = "</script><script>document.title='owned'</script>\x1b[31m"
    (tmp_path / "log.jsonl").write_text(
        "".join(
            json.dumps({"step": i, "reward": i / 100, "entropy": 1.0, "kl": 0.01}) + "\n"
            for i in range(1, 60)
        )
    )
    (tmp_path / "rollouts.jsonl").write_text(
        "".join(
            json.dumps({"step": i, "prompt": "2+2?", "completion": hostile, "reward": float(k % 2)})
            + "\n"
            for i in range(1, 60)
            for k in range(4)
        )
    )
    plain = written("diagnose", str(tmp_path), "--format", "html")
    assert "owned" not in plain and data_of(plain)[0]["samples"] == []
    place = tmp_path / "out.html"
    written("diagnose", str(tmp_path), "--with-samples", "-o", str(place))
    page = place.read_text(encoding="utf-8")
    samples = data_of(page)[0]["samples"]
    assert isinstance(samples, list) and samples[0]["completion"] == hostile.replace(
        "\x1b", "⟨ESC⟩"
    )
    assert page.count("</script>") == 2


def test_samples_are_refused_elsewhere() -> None:
    assert "--format html" in written("diagnose", str(DEMO), "--with-samples", code=2)


def test_two_thousand_steps_of_eight_curves_stay_small(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    keys = ("reward", "acc", "entropy", "kl", "adv_std", "clip_frac", "ratio_mean", "len")
    with open(tmp_path / "log.jsonl", "w") as log:
        for step in range(2000):
            log.write(
                json.dumps({"step": step, **dict(zip(keys, draw.random(8), strict=True))}) + "\n"
            )
    page = written("diagnose", str(tmp_path / "log.jsonl"), "--format", "html")
    assert len(page.encode()) < 300_000
    assert len(data_of(page)[0]["curves"]) == 8  # type: ignore[arg-type]


def test_several_runs_share_one_file() -> None:
    page = written("diagnose", str(DEMO), str(DEMO), "--format", "html")
    assert len(data_of(page)) == 2


def decoded(encoded: dict[str, object], encoder: Encoder) -> tuple[list[int], list[float]]:
    form = encoder.grids[int(str(encoded["grid"]))]
    if "gaps" in form:
        gaps = np.frombuffer(base64.b64decode(form["gaps"]), f"<u{form['width']}")
        steps = np.concatenate([[form["first"]], form["first"] + np.cumsum(gaps.astype(np.int64))])
    else:
        steps = form["first"] + form["by"] * np.arange(form["n"])
    return steps.tolist(), np.frombuffer(base64.b64decode(str(encoded["values"])), "<f4").tolist()


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40, unique=True))
def test_steps_survive_their_short_form(steps: list[int]) -> None:
    steps.sort()
    encoder = Encoder()
    curve = Curve(
        Metric("kl", "", "nats", "kl"), np.array(steps), np.arange(len(steps), dtype=float)
    )
    found, values = decoded(encoder.curve(curve, 100), encoder)
    assert found == steps and values == list(range(len(steps)))


@given(
    hnp.arrays(float, st.integers(3, 300), elements=st.floats(-1e6, 1e6) | st.just(float("nan")))
)
def test_thinning_keeps_the_lowest_and_the_highest_of_every_stretch(
    values: npt.NDArray[np.float64],
) -> None:
    kept = extremes(values, 5)
    assert kept[0] == 0 and kept[-1] == len(values) - 1
    edges = np.linspace(0, len(values), 6).astype(int)
    if len(values) < 5:
        return
    for a, b in itertools.pairwise(edges):
        part = values[a:b]
        here = values[kept[(kept >= a) & (kept < b)]]
        if np.isfinite(part).any():
            assert np.nanmin(here) == np.nanmin(part) and np.nanmax(here) == np.nanmax(part)
        assert np.isnan(here).any() == np.isnan(part).any()


def test_no_steps_make_an_empty_grid() -> None:
    assert grid(np.array([], dtype=np.int64))["n"] == 0
