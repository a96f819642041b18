"""TensorBoard's event files: values, restarts, tag groups, damage, settings, and which folders form a run."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path

import numpy as np
import pytest
from tracker_files import (
    double,
    event,
    opening,
    part,
    scalars,
    simple,
    tensor,
    varint,
    whole,
)

from klinic import sources
from klinic.errors import UnreadableInput
from klinic.read import read, read_all

RUN = Path(__file__).parent / "runs" / "tensorboard" / "demo"
DEMO = Path(sources.__file__).parent.parent / "demo" / "trl-entropy-collapse"


def rows(first, last, shift=0.0):
    return [
        (i, {"train/reward": 0.5 + shift, "train/entropy": 1.5}) for i in range(first, last + 1)
    ]


def write(folder, data, name="events.out.tfevents.1.host.1.0"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def columns(path):
    return {
        key: (column.steps.tolist(), column.values.tolist())
        for key, column in sources.read_file(path).columns.items()
    }


def curve(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def test_the_librarys_own_file_gives_the_curves_of_the_run_it_was_made_from():
    run, state = read(RUN), read(DEMO / "trainer_state.json")
    assert run.trainer.name == "trl" and run.name == "demo" and run.logged == 140
    for key in ("reward", "entropy", "frac_reward_zero_std"):
        ours, theirs = curve(run, f"train/{key}"), curve(state, key)
        assert ours.metric.name == theirs.metric.name
        assert ours.steps.tolist() == theirs.steps.tolist()
        np.testing.assert_array_equal(ours.values, theirs.values.astype(np.float32))
    assert run.setting("lr") == 0.001 and run.setting("group_size") == 8


def test_every_way_to_write_a_number(tmp_path):
    values = [
        simple("simple", 0.25),
        tensor("float", 1, struct.pack("<f", 0.25)),
        tensor("double", 2, struct.pack("<d", 0.1)),
        tensor("half", 19, struct.pack("<e", 0.25)),
        tensor("brain", 14, struct.pack("<f", 0.25)[2:]),
        tensor("whole", 9, struct.pack("<q", -7)),
        tensor("float-val", 1, fields=varint(5 << 3 | 5) + struct.pack("<f", 0.25)),
        tensor("packed", 1, fields=part(5, struct.pack("<f", 0.25))),
        tensor("double-val", 2, fields=double(6, 0.1)),
        tensor("half-val", 19, fields=whole(13, 0x3400)),
        tensor("int-val", 3, fields=whole(7, -7)),
        tensor("of-one", 1, struct.pack("<f", 0.25), shape=(1, 1)),
        tensor("histogram", 2, struct.pack("<6d", *range(6)), shape=(2, 3), plugin="histograms"),
        tensor("text", 7, fields=part(8, "0.25"), plugin="text"),
    ]
    path = write(tmp_path, opening() + b"".join(event(s, v) for s in (0, 5, 300) for v in values))
    found = columns(path)
    wanted = {
        "simple": 0.25, "float": 0.25, "double": 0.1, "half": 0.25, "brain": 0.25, "whole": -7.0,
        "float-val": 0.25, "packed": 0.25, "double-val": 0.1, "half-val": 0.25, "int-val": -7.0, "of-one": 0.25,
    }  # fmt: skip
    assert found == {key: ([0, 5, 300], [value] * 3) for key, value in wanted.items()}


def test_a_row_in_one_event_odd_numbers_and_large_steps(tmp_path):
    data = opening()
    for step in (1, 2**40, 2**40 + 1):
        data += event(step, simple("a", math.nan), simple("b", math.inf), simple("c", -1.0))
    found = columns(write(tmp_path, data))
    assert found["b"] == ([1, 2**40, 2**40 + 1], [math.inf] * 3) and found["c"][1] == [-1.0] * 3
    assert all(math.isnan(value) for value in found["a"][1])


@pytest.mark.parametrize("cut", [1, 3, 9, 13, 30])
def test_a_killed_run_keeps_what_is_whole(tmp_path, cut):
    data = scalars(rows(1, 30))
    reading = sources.read_file(write(tmp_path, data[:-cut]))
    assert len(reading.columns["train/reward"].steps) == 30
    assert len(reading.columns["train/entropy"].steps) == 29
    assert "broken records" not in reading.holds


def test_a_damaged_record_is_counted_and_passed_over(tmp_path):
    data = bytearray(scalars(rows(1, 30)))
    at = data.index(struct.pack("<f", 0.5), len(data) // 2)
    data[at] ^= 255
    reading = sources.read_file(write(tmp_path, bytes(data)))
    assert reading.holds["broken records"] == 1
    assert len(reading.columns["train/reward"].steps) == 29
    size = len(data) // 2
    at = data.index(struct.pack("<Q", len(event(20, simple("train/reward", 0.5))) - 16), size)
    data[at] ^= 1  # a length: what follows cannot be found
    assert (
        0 < len(sources.read_file(write(tmp_path, bytes(data))).columns["train/reward"].steps) < 29
    )


@pytest.mark.parametrize(
    "data", [b"version https://git-lfs.github.com/spec/v1\n", b"\x18\0\0\0\0\0\0\0abcd" * 9]
)
def test_a_file_that_is_none_is_one_clear_line(tmp_path, data):
    path = write(tmp_path, data)
    with pytest.raises(UnreadableInput, match="first record is damaged") as trouble:
        read(path)
    assert path.name in str(trouble.value) and "git lfs pull" in trouble.value.hint
    with pytest.raises(UnreadableInput, match="first record is damaged"):
        read(tmp_path)


def test_a_restart_in_a_later_file_and_a_damaged_file_beside(tmp_path):
    write(tmp_path, scalars(rows(1, 100), wall=1000.0), "events.out.tfevents.1000.a.1.0")
    write(tmp_path, scalars(rows(61, 140, 0.25), wall=2000.0), "events.out.tfevents.2000.a.2.0")
    write(tmp_path, b"not one", "events.out.tfevents.3000.a.3.0")
    write(tmp_path, b"", "events.out.tfevents.4000.a.4.0")
    run = read(tmp_path)
    reward = curve(run, "train/reward")
    assert reward.steps.tolist() == list(range(1, 141))
    assert reward.values.tolist() == [0.5] * 60 + [0.75] * 80
    assert [(s.first, s.last, s.rewound_to) for s in run.segments] == [
        (1, 100, None),
        (61, 140, 61),
    ]


def test_tag_groups_in_folders_survive_a_restart(tmp_path):
    for start, (first, last) in ((1000.0, (1, 100)), (2000.0, (51, 120))):
        write(tmp_path / "run", scalars(rows(first, last), wall=start), f"tfevents.{start}")
        evals = [(i, {"pass_at_1": i / 1000}) for i in range(first + 9, last + 1, 10)]
        write(tmp_path / "run" / "eval", scalars(evals, wall=start + 1), f"tfevents.{start}")
    run = read(tmp_path)
    assert run.name == "run" and curve(run, "train/reward").steps.tolist() == list(range(1, 121))
    reading = sources.read_files(
        [
            (path, "eval" if path.parent.name == "eval" else "")
            for path in sorted(tmp_path.rglob("tf*"))
        ],
        "run",
    )[0][0]
    assert reading.columns["eval/pass_at_1"].steps.tolist() == list(range(10, 121, 10))


def test_writers_side_by_side_are_averaged_and_a_tag_of_its_own_clock_restarts_nothing(tmp_path):
    for rank in range(2):
        data = scalars(rows(1, 20, rank), wall=1000.0 + rank / 10)
        write(tmp_path / "ranks", data, f"events.out.tfevents.1000.host{rank}")
    run = read(tmp_path / "ranks")
    assert set(curve(run, "train/reward").values) == {1.0} and len(run.segments) == 1
    inner = [(i, {"train/reward": 0.5, "train/kl": 0.1}) for i in range(1, 21)]
    mixed = [row for i in inner for row in (i, (i[0] % 4, {"batch/loss": 1.0}))]
    run = read(write(tmp_path / "clock", scalars(mixed)))
    assert curve(run, "train/reward").steps.tolist() == list(range(1, 21))
    assert len(run.segments) == 1


def test_runs_below_runs(tmp_path):
    for name in ("Jan01_host", "Jan02_host"):
        write(tmp_path / "runs" / name, scalars(rows(1, 20)))
    assert [run.name for run in read_all(tmp_path)] == ["Jan01_host", "Jan02_host"]
    state = {"log_history": [{"step": i, "loss": 0.1, "kl": 0.2} for i in range(1, 21)]}
    (tmp_path / "checkpoint-20").mkdir()
    (tmp_path / "checkpoint-20" / "trainer_state.json").write_text(json.dumps(state, indent=1))
    run = read(tmp_path)  # both are starts of the one run whose state lies beside
    assert {"kl", "train/entropy"} <= {c.metric.source_key for c in run.curves.values()}
    assert [c.name for c in run.checkpoints] == ["checkpoint-20"]
    run = read(tmp_path / "runs" / "Jan02_host")
    assert [c.name for c in run.checkpoints] == ["checkpoint-20"]


def test_train_and_eval_side_by_side_are_one_run(tmp_path):
    write(tmp_path / "logs-7" / "train", scalars([(i, {"reward": 0.5}) for i in range(20)]))
    write(tmp_path / "logs-7" / "validation", scalars([(i, {"acc": 0.5}) for i in range(20)]))
    assert curve(read(tmp_path), "train/reward").steps[-1] == 19


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"learning_rate": 1e-4, "num_generations": 4}),
        "```json\n" + json.dumps({"learning_rate": 1e-4, "num_generations": 4}) + "\n```",
        "|param|value|\n|-|-|\n|learning_rate|1e-4|\n|num_generations|4|",
        "learning_rate: 1.0e-4\nnum_generations: 4\n",
    ],
)
def test_settings_in_a_text(tmp_path, said):
    text = tensor("args/text_summary", 7, fields=part(8, said), plugin="text")
    other = tensor(
        "model_config/text_summary", 7, fields=part(8, '{"temperature": 9}'), plugin="text"
    )
    data = opening() + event(0, text) + event(0, other)
    run = read(write(tmp_path, data + scalars(rows(1, 20))[len(opening()) :]), trainer="trl")
    assert run.setting("lr") == 1e-4 and run.setting("group_size") == 4
    assert run.setting("temperature") is None


def test_settings_of_the_hparams_plugin(tmp_path):
    pairs = {"learning_rate": double(2, 1e-4), "num_generations": double(2, 4.0)}
    held = b"".join(part(1, part(1, key) + part(2, value)) for key, value in pairs.items())
    value = part(1, "_hparams_/session_start_info") + part(
        9, part(1, part(1, "hparams") + part(2, part(3, held)))
    )
    data = opening() + event(0, value) + scalars(rows(1, 20))[len(opening()) :]
    run = read(write(tmp_path, data), trainer="trl")
    assert run.setting("lr") == 1e-4 and run.setting("group_size") == 4


def test_standard_input_needs_no_name(tmp_path):
    import io

    reading = sources.read_stream(io.BytesIO(scalars(rows(1, 20))), "-")
    assert len(reading.columns["train/reward"].steps) == 20
