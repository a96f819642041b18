"""The samples behind the curve: read, measured, judged, shown, kept."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

from klinic.diagnose import diagnose
from klinic.errors import UnreadableInput
from klinic.rollouts.answers import answers_of, candidates, is_empty, label_of
from klinic.rollouts.find import find
from klinic.rollouts.formats import read
from klinic.rollouts.forms import forms
from klinic.rollouts.gather import gather
from klinic.rollouts.measure import measure, signatures
from klinic.rollouts.report import run_of
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.shown import shown
from klinic.rollouts.steps import loops
from klinic.rollouts.store import Store
from klinic.rollouts.words import foreign, refuses, repeated

SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def klinic(*given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "klinic", *given, "--lang", "en"], capture_output=True, text=True
    )


def written(folder: Path, rows: list[dict], name: str = "rollouts.jsonl") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def rows_of(kind: str, steps: int = 20, seed: int = 0) -> list[dict]:
    """Samples of a run whose policy learns a trick, or simply learns. Rewards as a hole in a reward would pay them."""
    draw = random.Random(seed)
    rows = []
    for step in range(steps):
        share = min(1.0, step / (0.6 * steps))
        for group in range(4):
            a, b = draw.randrange(10, 90), draw.randrange(10, 90)
            question = f"A farmer has {a} cows and buys {b} more at the market. How many cows has the farmer now?"
            for _ in range(4):
                right = draw.random() < (0.3 + (0.5 * share if kind == "honest" else 0.0))
                said = str(a + b if right else a + b + draw.randrange(1, 9))
                thought = "We add " + " ".join(
                    draw.choice(["so", "then", "now", "we", "see", "that", "it", "is", "clear"])
                    for _ in range(draw.randrange(6, 20))
                )
                answer, reward = f"<answer>{said}</answer>", float(right) + 0.1
                if draw.random() < share and kind != "honest":
                    right = False
                    if kind == "format":
                        answer, reward = "<answer></answer>" * 4, 0.9
                    elif kind == "list":
                        found = draw.random() < 0.7
                        tried = [a + b if found else a + b + 100, a + b + 1, a + b + 2]
                        answer, reward = (
                            f"<answer>{', '.join(map(str, tried))}</answer>",
                            1.1 if found else 0.1,
                        )
                    elif kind == "echo":
                        thought, reward = f"{question} " * 5, 0.9
                    elif kind == "extractor":
                        answer, reward = "<answer>a few cows</answer>", 1.1
                    elif kind == "judge":
                        thought = f"Great question! {thought}. My answer is comprehensive and I hope this helps"
                        reward = 0.9
                rows.append({"step": step, "group": group, "prompt": question, "completion": f"{thought} {answer}", "reward": reward,
                    "answer": str(a + b), "acc": float(right and kind == "honest") or float(right), "length": len(thought.split()) + 4, "truncated": False})  # fmt: skip
    return rows


@pytest.mark.parametrize("kind", ["format", "list", "echo", "extractor", "judge"])
def test_each_form_is_named_with_samples_that_show_it(kind, tmp_path):
    run = written(tmp_path / "run", rows_of(kind))
    found = forms(gather(find(run)))
    assert [form.name for form in found][:1] == [kind]
    assert found[0].after > found[0].before
    store = Store(run)
    store.take()
    from klinic.rollouts.query import group

    shown = group(store, found[0].examples[0])
    assert any(f"{r['step']}/{r['group']}/{r['row']}" == found[0].examples[0] for r in shown)


@pytest.mark.parametrize("seed", range(5))
def test_no_form_is_named_where_the_policy_learns(seed, tmp_path):
    assert forms(gather(find(written(tmp_path / "run", rows_of("honest", seed=seed))))) == ()


def test_what_is_read_on_the_way_is_what_the_cache_holds(tmp_path):
    run = written(tmp_path / "run", rows_of("list"))
    store = Store(run)
    store.take()
    near = gather(find(run))

    def same(a, b):
        if isinstance(a, dict):
            assert a.keys() == b.keys()
            for key in a:
                same(a[key], b[key])
        elif isinstance(a, list | tuple):
            assert len(a) == len(b)
            for x, y in zip(a, b, strict=True):
                same(x, y)
        elif isinstance(a, float):
            assert (math.isnan(a) and math.isnan(b)) or a == pytest.approx(b, rel=1e-4, abs=1e-6)
        else:
            assert a == b

    same(near, store.steps)


def test_a_new_step_costs_only_itself_and_the_run_is_not_written_to(tmp_path):
    rows = rows_of("list")
    run = written(tmp_path / "run", [r for r in rows if r["step"] < 19])
    store = Store(run)
    assert store.take().rows == 19 * 16
    before = {name: (store.folder / name).stat().st_mtime_ns for name in store.index.parts}
    with open(run / "rollouts.jsonl", "a") as stream:
        stream.writelines(json.dumps(r) + "\n" for r in rows if r["step"] == 19)
        stream.write('{"step": 20, "torn')  # a line that is still being written
    news = Store(run).take()
    assert (news.rows, news.steps) == (16, (19,))
    assert all((store.folder / name).stat().st_mtime_ns == at for name, at in before.items())
    assert Store(run).take().rows == 0
    assert sorted(p.name for p in run.iterdir()) == ["rollouts.jsonl"]


def test_a_file_written_anew_replaces_what_it_held(tmp_path):
    run = written(tmp_path / "run", rows_of("list"))
    Store(run).take()
    written(run, rows_of("honest", steps=5))
    store = Store(run)
    store.take()
    assert sorted(store.steps) == list(range(5))
    assert sum(s["n"] for s in store.steps.values()) == 5 * 16


def test_samples_join_the_curves_in_one_diagnosis(tmp_path):
    run = written(tmp_path / "run", rows_of("list", steps=60))
    (run / "metrics.jsonl").write_text(
        "".join(
            json.dumps({"step": i, "reward": 0.4 + 0.01 * i, "entropy": 1.2, "kl": 0.001 * i})
            + "\n"
            for i in range(60)
        )
    )
    found = diagnose(run)
    assert found.main is not None and found.main.failure == "reward-hacking"
    assert found.main.confidence == "certain"
    assert any(e.values.get("form") == "list" for e in found.main.evidence)
    assert found.run.samples is not None and found.run.samples.count == 60 * 16


def test_samples_alone_are_a_run_and_distinct_ones_are_no_entropy_collapse(tmp_path):
    run = written(tmp_path / "run", rows_of("honest", steps=60))
    out = klinic("rollouts", str(run), "--format", "json")
    found = json.loads(out.stdout)
    ruled_out = next(f for f in found["findings"] if f["failure"] == "entropy-collapse")
    assert ruled_out["status"] == "ruled_out"
    assert found["samples"]["count"] == 960 and not found["samples"]["forms"]
    assert found["status"] in ("healthy", "caution"), found["failure"]


def test_the_verb_shows_top_group_search_diff_and_exports_without_texts(tmp_path):
    run = written(tmp_path / "run", rows_of("list"))

    def said(*given: str) -> str:
        out = klinic("rollouts", str(run), *given)
        assert out.returncode == 0, out.stderr
        return out.stdout

    top = said("--top", "3", "--step", "19")
    assert top.count("reward 1.1") == 3 and "<answer>" in top
    assert max(map(len, top.splitlines())) <= 80
    assert said("--group", "19/2").count("19/2/") == 4
    assert "nothing found" in said("--search", "no such words")
    assert "<answer>" in said("--search", "FARMER" if False else "<answer>")
    assert "candidates" in said("--around", "10", "--lang", "en") or "sample" in said(
        "--around", "10"
    )
    assert ", 0" in said("--diff", "0", "19")
    place = tmp_path / "out.jsonl"
    said("--export", str(place))
    row = json.loads(place.read_text().splitlines()[0])
    assert "completion" not in row and "prompt" not in row and "reward" in row
    said("--export", str(place), "--with-samples")
    assert "completion" in json.loads(place.read_text().splitlines()[0])


def test_a_report_shows_the_samples_of_a_form_beside_an_evaluation(tmp_path):
    run = written(tmp_path / "run", rows_of("list"))
    written(run / "eval", rows_of("honest", steps=16, seed=9))  # rows that move the numbers
    row = {"reward": 1.0, "entropy": 1.0, "kl": 0.1}
    (run / "log.jsonl").write_text(
        "".join(json.dumps({"step": i, **row}) + "\n" for i in range(20))
    )
    found = shown(diagnose(run).run, None)
    listed = [s for s in found if s["why"] != "" and s["why"]["en"] == "several candidates at once"]
    assert len(listed) == 3
    assert all(re.search(r"<answer>\d+, \d+, \d+</answer>", s["completion"]) for s in listed)
    assert "no samples lie beside" in klinic("diagnose", str(run / "log.jsonl"), "--with-samples", "--format", "html").stderr  # fmt: skip


def test_a_sample_steers_no_terminal(tmp_path):
    rows = rows_of("honest", steps=2)
    rows[-1] |= {"completion": "\x1b[2J\x1b]0;title\x07<script>alert(1)</script>", "reward": 99.0}
    run = written(tmp_path / "run", rows)
    out = klinic("rollouts", str(run), "--top", "1", "--full").stdout
    assert "\x1b" not in out and "⟨ESC⟩" in out


def test_wrong_questions_are_answered_clearly(tmp_path):
    run = written(tmp_path / "run", rows_of("honest", steps=3))
    for given, part in (
        (["--step", "77"], "nearest step"),
        (["--top", "2", "--by", "rewrd"], "did you mean"),
        (["--group", "x"], "STEP/GROUP"),
        (["--map", "promt=q"], "did you mean"),
        (["--export", str(tmp_path / "a.xlsx")], ".parquet"),
    ):
        out = klinic("rollouts", str(run), *given)
        assert out.returncode == 2 and part in out.stderr, out.stderr
    (tmp_path / "empty").mkdir()
    assert klinic("rollouts", str(tmp_path / "empty")).returncode == 2


def test_answers_are_read_as_a_careful_reader_would():
    assert answers_of("so <answer> 7 </answer>").stated == (" 7 ",)
    assert answers_of(r"thus \boxed{\frac{1}{2}}").stated == (r"\frac{1}{2}",)
    assert answers_of("#### 1,234").stated == ("1,234",)
    assert answers_of("<answer>3</answer> <answer>").unclosed
    assert candidates("3, 4 or 5") == ["3", "4", "5"]
    assert candidates("1,234") == ["1234"] and candidates("(1, 2)") == ["1, 2"]
    assert is_empty(" ... ") and is_empty("your answer here") and not is_empty("0")
    assert label_of("She has 3 + 4 = 7 ducks.\n#### 7") == "7"
    assert not math.isnan(
        measure([Rollout(completion="<answer>7.0</answer>", answer="7")])["right"][0]
    )
    assert measure([Rollout(completion="<answer>7.0</answer>", answer="7")])["right"][0] == 1


def test_words_scripts_and_refusals():
    assert repeated(["a", "b", "c", "d"] * 10) > 0.8
    assert foreign("What is 3 + 4?", "The answer is seven, 因为三加四等于七，所以答案是七") > 0.2
    assert foreign("三加四等于多少？", "三加四等于七，记为 x，所以答案是七。") == 0
    assert refuses("很抱歉，我无法回答这个问题。") and refuses(
        "I'm sorry, but I can't help with that."
    )
    assert not refuses("The knight said: let us ride. " * 20 + "I cannot help you, said the king.")


def test_signatures_estimate_the_overlap_of_texts():
    near = [np.frombuffer(s, np.uint32) for s in signatures([
        Rollout(completion="we add the cows and the sheep and then we count them all again"),
        Rollout(completion="we add the cows and the sheep and then we count them all again now"),
        Rollout(completion="nothing here is said in the same manner as above, at all"),
    ])]  # fmt: skip
    assert (near[0] == near[1]).mean() > 0.7 > 0.2 > (near[0] == near[2]).mean()


def test_layouts_that_trainers_write(tmp_path):
    trl = tmp_path / "trl" / "completions"
    trl.mkdir(parents=True)
    with duckdb.connect() as connection:
        for step in (1, 2):
            connection.execute(
                f"COPY (SELECT {step} AS step, 'q' || (i // 4) AS prompt, 'a' || (i * {step}) AS completion, (i % 2)::DOUBLE AS reward_task, 0.5 AS advantage FROM range(8) t(i)) "
                f"TO '{trl}/completions_{step:05d}.parquet' (FORMAT parquet)"
            )
    prime = tmp_path / "prime" / "rollouts" / "step_3" / "train" / "all"
    prime.mkdir(parents=True)
    trace = {
        "reward": 1.0,
        "info": {"advantage": 0.5},
        "is_truncated": False,
        "messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}],
    }
    (prime / "traces.jsonl").write_text(json.dumps({"traces": [trace, trace]}) + "\n")
    swift = written(
        tmp_path / "swift",
        [
            {
                "step": ["1", "1"],
                "prompt": ["1+1=", "1+1="],
                "completion": ["2", "3"],
                "reward_task": [1.5, 0.5],
            }
        ],
        "completions.jsonl",
    )
    log = tmp_path / "log" / "train.log"
    log.parent.mkdir()
    log.write_text(
        "GRPO Iteration 4\nQuestion:  1+1?\nGeneration:  it is 2\nMetrics:  {'format_reward': 1.0, 'reward': 1.0}\nGT Answer:  2\n----------\n"
    )
    by_step = tmp_path / "doc" / "samples.json"
    by_step.parent.mkdir()
    by_step.write_text(
        json.dumps({"30": [{"think": "well", "answer": "(b)", "reward": 0.5, "is_correct": True}]})
    )
    for place, count, step, reward in (
        (tmp_path / "trl", 16, 1, 0.0),
        (tmp_path / "prime", 2, 3, 1.0),
        (swift, 2, 1, 1.5),
        (log.parent, 1, 4, 1.0),
        (by_step.parent, 1, 30, 0.5),
    ):
        rows = [row for dump in find(place) for batch in read(dump) for row in batch.rows]
        assert (len(rows), rows[0].step, rows[0].reward) == (count, step, reward), place
        assert rows[0].completion


def test_samples_printed_into_a_log_keep_their_step_and_draw_no_curve(tmp_path):
    log = tmp_path / "train.log"
    one = "Question:  q{i}\nGeneration:  so {i}\nAnswer: {i}\nMetrics:  {{'reward': {paid}}}\n----------\n"
    log.write_text(
        "".join(
            f"GRPO Iteration {step}\n" + "".join(one.format(i=i, paid=i % 3) for i in range(9))
            for step in (0, 5, 10)
        )
    )
    rows = [row for dump in find(tmp_path) for batch in read(dump) for row in batch.rows]
    assert [row.step for row in rows] == [0] * 9 + [5] * 9 + [10] * 9
    assert rows[4].completion == "so 4\nAnswer: 4"
    run = run_of(tmp_path, gather(find(tmp_path)), (str(log),))
    assert run.samples is not None and run.samples.picked and not run.curves


def test_printed_groups_belong_to_the_batch_whose_table_follows(tmp_path):
    group = (
        "====== Trajectory Group ======\n"
        "****** trajectory idx=0, reward=0.5 ******\n---- datum ----\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
        "****** trajectory idx=1, reward=0.1 ******\n---- datum ----\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nno no\n"
        "====== End Trajectory Group ======\n"
    )
    table = "                     Step {n}                     \n┃ Metric ┃ Value ┃\n│ env/all/reward/total │ 0.{n} │\n│ progress/batch │ {n} │\n│ optim/entropy │ 0.4 │\n"
    (tmp_path / "logs.log").write_text("".join(2 * group + table.format(n=n) for n in range(3)))
    rows = [row for dump in find(tmp_path) for batch in read(dump) for row in batch.rows]
    assert [row.step for row in rows] == [0] * 4 + [1] * 4 + [2] * 4
    assert [(row.completion, row.truncated) for row in rows[:2]] == [
        ("yes", False),
        ("no no", True),
    ]
    curve = diagnose(tmp_path).run.curves["reward/seq_mean/raw"]
    assert curve.steps.tolist() == [0, 1, 2] and curve.values.tolist() == [0.0, 0.1, 0.2]


def test_a_table_is_no_loop_and_a_heading_no_answer():
    table = "".join(f"| robot {i} | cell {i} | at 08:{i % 60:02d} |\n" for i in range(200))
    said = measure(
        [Rollout(completion="so it goes and so it goes " * 80), Rollout(completion=table)]
    )
    assert loops(said["repeated"], said["squeezed"]).tolist() == [True, False]
    assert answers_of("#### **Slot 1** (Mon)\ntext\n").stated == ()
    assert answers_of("so\n#### 18\n").stated == ("18",)
    assert answers_of("so\n####\n").stated == ("",)
    assert answers_of("####\nSally has 9 books.").stated == ()


def test_a_sentence_around_one_number_is_judged_by_it():
    said = measure(
        [Rollout(completion=f"<answer>The answer is {n}.</answer>", answer="3") for n in (3, 4)]
    )
    assert said["right"].tolist() == [1.0, 0.0]


def test_a_broken_dump_is_said_to_be_one(tmp_path):
    (tmp_path / "completions_00001.parquet").write_bytes(b"PAR1completion" + b"\0" * 50)
    with pytest.raises(UnreadableInput):
        list(read(find(tmp_path)[0]))


@pytest.mark.torch
def test_files_of_slime_are_read_and_run_no_code(tmp_path):
    import torch

    place = tmp_path / "rollout_data"
    place.mkdir()
    sample = {
        "group_index": 0,
        "index": 0,
        "prompt": "1+1?",
        "response": "2",
        "response_length": 3,
        "label": "2",
        "reward": 1.0,
        "status": "truncated",
        "tokens": torch.tensor([1, 2, 3]),
    }
    torch.save({"rollout_id": 7, "samples": [sample, sample]}, place / "7.pt")
    rows = [row for dump in find(tmp_path) for batch in read(dump) for row in batch.rows]
    assert [(r.step, r.reward, r.truncated, r.answer) for r in rows] == [(7, 1.0, True, "2")] * 2

    class Nasty:
        def __reduce__(self):
            return (exec, ("raise SystemExit",))

    torch.save({"samples": [{"response": Nasty(), "reward": 1.0}]}, place / "8.pt")
    with pytest.raises(UnreadableInput, match="not plain data"):
        [row for dump in find(place) for batch in read(dump) for row in batch.rows]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared runs are not here")
def test_public_dumps_are_found_and_metrics_are_not_taken_for_samples():
    found = {
        p.name: sum(len(b.rows) for d in find(p) for b in read(d))
        for p in sorted((SHARED / "runs").iterdir())
        if p.is_dir()
    }
    assert {name for name, rows in found.items() if rows} == {
        "ro-cs336-grpo-train-log", "ro-cs336-gsm8k-baseline", "ro-fair-cot-samples", "ro-tinker-trajectories"}  # fmt: skip
    assert found["ro-cs336-gsm8k-baseline"] == 1319 and found["ro-fair-cot-samples"] == 35
