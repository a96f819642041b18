"""A long verl log gives the same numbers as when every line of it is looked at."""

from __future__ import annotations

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klinic.diagnose import diagnose_all
from klinic.read import read
from klinic.render.text import render
from klinic.sources.console import skim
from klinic.sources.console.reader import Console
from klinic.sources.rows import Reading

RAY = "\x1b[36m(TaskRunner pid=64115)\x1b[0m "
NOISE = (
    "the answer is 3, so first we step: by step\n",
    "\x1b[36m(WorkerDict pid=9)\x1b[0m INFO 05-06 14:11:58 [pool.py:31] reset prefix cache\n",
    "\rProcessed prompts:  40%|####      | 205/512 [00:11<00:17, 3.1it/s]",
    "x" * 300 + "\n",
    "step:7 - this is prose, not a row\n",
    "\n",
    "步骤 step: 三\n",
)


def row(step: int) -> str:
    return f"{RAY}step:{step} - actor/entropy:{1.8 - step / 1000} - critic/score/mean:np.float64({step / 500}) - response_length/mean:{300 + step}.0\n"


@pytest.fixture
def short(monkeypatch):
    """Let logs of some kilobytes count as long."""
    monkeypatch.setattr(skim, "LONG", 4000)
    monkeypatch.setattr(skim, "TAIL", 600)
    monkeypatch.setattr(skim, "CHUNK", 512)
    monkeypatch.setattr(skim, "BEFORE_RESTART", 1500)


def columns(text: str, folder, whole: bool) -> dict[str, tuple[list[int], list[float]]]:
    reading = Reading("run.log")
    if whole:
        stream = io.BytesIO(text.encode())  # no file number: it cannot be known to be long
        Console(reading).read(stream, b"")
    else:
        path = folder / "run.log"
        path.write_bytes(text.encode())
        with path.open("rb") as stream:
            Console(reading).read(stream, b"")
    return {
        key: (list(column.steps), list(column.values)) for key, column in reading.columns.items()
    }


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    gaps=st.lists(st.lists(st.sampled_from(NOISE), max_size=12), min_size=12, max_size=40),
    back=st.one_of(st.none(), st.integers(3, 10)),
    cut=st.integers(0, 120),
)
def test_rows_are_those_of_the_whole_log(short, tmp_path, gaps, back, cut):
    steps = list(range(1, len(gaps) + 1))
    if back is not None:
        steps[back:] = range(max(1, back - 2), max(1, back - 2) + len(steps) - back)
    text = "".join("".join(gap) + "\n" + row(step) for gap, step in zip(gaps, steps, strict=True))
    text = text[: len(text) - cut]
    found, expected = columns(text, tmp_path, False), columns(text, tmp_path, True)
    names = ("actor/entropy", "critic/score/mean", "response_length/mean")
    for name in names:
        assert found.get(name) == expected.get(name)


def test_the_reason_of_a_restart_and_the_last_words_are_read_with_their_lines(short, tmp_path):
    noise = NOISE[1] * 8
    crash = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: CUDA error: out of memory\n'
    first = "".join(noise + row(step) for step in range(1, 11))
    second = "".join(noise + row(step) for step in range(8, 21))
    text = first + noise + crash + second + noise + crash
    path = tmp_path / "run.log"
    path.write_text(text)
    reading = Reading("run.log")
    with path.open("rb") as stream:
        Console(reading).read(stream, b"")
    places = [event.at for event in reading.events if event.kind in ("traceback", "crash")]
    lines = [i for i, line in enumerate(text.split("\n"), 1) if line.startswith("Traceback")]
    assert [f"run.log:{line}" for line in lines] == places
    assert reading.holds["bytes passed over"] > 1000
    assert [(s.first, s.last) for s in reading.closed_segments()] == [(1, 10), (8, 20)]


def test_a_log_of_real_length_is_skimmed_and_says_so(tmp_path):
    filler = NOISE[1] * 2600
    path = tmp_path / "train.log"
    with path.open("w") as stream:
        for step in range(1, 101):
            stream.write(filler + row(step))
    assert path.stat().st_size > skim.LONG
    run = read(path)
    curve = next(c for c in run.curves.values() if c.metric.source_key == "actor/entropy")
    assert curve.steps.tolist() == list(range(1, 101))
    answer = render(diagnose_all(path), "en")
    assert "only the lines with step:" in " ".join(answer.split())
