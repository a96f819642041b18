"""Every format, spelled as trainers spell it, comes out as the same numbers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import klinic
from klinic.errors import BadUsage, UnreadableInput
from klinic.read import parse_mapping, read, read_all
from klinic.trainers import tables


def written(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def rows(n=20):
    return [(i, 0.4 + i / 100, 1.8 - i / 50) for i in range(1, n + 1)]


def by_source(run, key):
    return next(c for c in run.curves.values() if c.metric.source_key == key)


def test_the_hand_printed_line_with_percent_signs(tmp_path):
    text = "".join(
        f"[{i:4d}] reward={r:.3f} acc={100 * r:.1f}% entropy={e:.3f} clip=0.010 len=84\n"
        for i, r, e in rows()
    )
    run = read(written(tmp_path, "run.log", text))
    assert run.trainer.name == "generic"
    assert run.first == 1 and run.last == 20 and run.logged == 20
    assert by_source(run, "acc").values[0] == pytest.approx(0.41)
    assert by_source(run, "clip").metric.name == "clip_frac/unknown"


@pytest.mark.parametrize(
    "line",
    [
        "step {i} | reward: {r} | entropy: {e}",
        "Step {i} | reward:{r} entropy:{e} ",
        "INFO 05-06 14:11:58 train.py:54] step={i} reward={r} entropy={e}",
        "iteration {i}, reward = {r}, entropy = {e}",
        "step {i}: {{'reward': {r}, 'entropy': {e}}}",
    ],
)
def test_pairs_on_a_line_that_carries_a_step(tmp_path, line):
    text = "noise before 3\n" + "".join(line.format(i=i, r=r, e=e) + "\n" for i, r, e in rows())
    run = read(written(tmp_path, "run.log", text))
    assert by_source(run, "reward").steps.tolist() == list(range(1, 21))
    assert by_source(run, "entropy").values[-1] == pytest.approx(1.8 - 20 / 50)


def test_trl_rows_plain_and_quoted_between_bars_take_their_step_from_the_bar(tmp_path):
    for quote in ("", "'"):
        parts = []
        for i, r, e in rows(10):
            parts.append(
                f"\r {i}%|x| {i * 5}/50 [00:18<12:32,  3.86s/it]\r{' ' * 30}\r{{'loss': {quote}0.01{quote}, 'reward': {quote}{r}{quote}, 'completion_length': {quote}80{quote}, 'entropy': {quote}{e}{quote}, 'grad_norm': {quote}nan{quote}, 'epoch': {quote}0.1{quote}}}\n"
            )
        parts.append("{'train_runtime': 12.0, 'train_loss': 0.1, 'epoch': 1.0}\n")
        run = read(written(tmp_path, "train.log", "".join(parts)))
        assert run.trainer.name == "trl"
        assert by_source(run, "reward").steps.tolist() == list(range(5, 51, 5))
        assert np.isnan(by_source(run, "grad_norm").values).all()
        assert run.logged == 10


def test_verl_console_lines_with_ray_colours_numpy_and_wraps(tmp_path):
    prefix = "\x1b[36m(TaskRunner pid=64115)\x1b[0m "
    text = "".join(
        f"{prefix}step:{i} - actor/entropy:{e} - actor/pg_clipfrac:np.float64(0.0) - critic/score/mean:np.float64({r}) - response_len\ngth/mean:120.0 - actor/grad_norm:nan\n"
        for i, r, e in rows()
    )
    run = read(written(tmp_path, "train.log", text))
    assert run.trainer.name == "verl"
    assert by_source(run, "response_length/mean").values.tolist() == [120.0] * 20
    assert by_source(run, "critic/score/mean").values[0] == pytest.approx(0.41)
    assert "clip_frac/token_mean/active" in run.absent, "0 on every step means one on-policy update"
    assert len(by_source(run, "actor/grad_norm").nonfinite_steps) == 20


def test_verl_file_logger_jsonl_array_csv_and_state_agree(tmp_path):
    flat = [
        {"step": i, "reward": r, "entropy": e, "frac_reward_zero_std": 0.19} for i, r, e in rows()
    ]
    files = {
        "a.jsonl": "\n".join(json.dumps(row) for row in flat),
        "b.json": json.dumps(flat, indent=1),
        "c.csv": "step,reward,entropy,frac_reward_zero_std\n"
        + "".join(f"{i},{r},{e},0.19\n" for i, r, e in rows()),
        "d.tsv": "step\treward\tentropy\n" + "".join(f"{i}\t{r}\t{e}\n" for i, r, e in rows()),
        "e.jsonl": "\n".join(
            json.dumps({"step": i, "data": {"reward": r, "entropy": e}}) for i, r, e in rows()
        ),
        "f.json": json.dumps(
            {
                "global_step": 20,
                "logging_steps": 1,
                "log_history": [*flat, {"step": 20, "train_runtime": 3.0, "train_loss": 1.0}],
            }
        ),
    }
    for name, text in files.items():
        run = read(written(tmp_path, name, text))
        assert by_source(run, "reward").values.tolist() == [r for _, r, _ in rows()], name
        assert by_source(run, "entropy").steps.tolist() == list(range(1, 21)), name


def test_nan_in_json_is_kept_null_is_not_a_value(tmp_path):
    run = read(
        written(
            tmp_path,
            "a.jsonl",
            '{"step":1,"reward":0.1,"kl":NaN}\n{"step":2,"reward":null,"kl":Infinity}\n{"step":3,"reward":0.3,"kl":0.1}\n',
        )
    )
    assert by_source(run, "reward").steps.tolist() == [1, 3]
    assert by_source(run, "kl").nonfinite_steps.tolist() == [1, 2]


def test_a_step_that_goes_back_starts_a_segment_and_the_newer_rows_count(tmp_path):
    text = "".join(f"[{i}] reward={i / 100} entropy=1.0\n" for i in [*range(1, 31), *range(21, 41)])
    run = read(
        written(tmp_path, "run.log", text.replace("[25] reward=0.25", "[25] reward=0.99", 1))
    )
    assert [(s.first, s.last, s.rewound_to) for s in run.segments] == [(1, 30, None), (21, 40, 21)]
    curve = by_source(run, "reward")
    assert curve.steps.tolist() == list(range(1, 41))
    assert curve.values[24] == 0.25


def test_rows_of_one_step_are_averaged_and_forward_filled_rows_thinned(tmp_path):
    run = read(
        written(
            tmp_path,
            "a.jsonl",
            "\n".join(json.dumps({"step": i // 2, "reward": float(i % 2)}) for i in range(40)),
        )
    )
    assert by_source(run, "reward").values.tolist() == [0.5] * 20
    filled = [
        {"step": i, "reward": 0.1 * (i // 10), "entropy": 2 - 0.07 * (i // 10)} for i in range(300)
    ]
    run = read(written(tmp_path, "b.jsonl", "\n".join(json.dumps(row) for row in filled)))
    assert len(by_source(run, "reward").values) == 30


def test_trl_kl_of_exactly_zero_is_absent_and_says_why(tmp_path):
    history = [
        {"step": i, "reward": r, "kl": 0.0, "completions/mean_length": 80.0} for i, r, _ in rows()
    ]
    run = read(written(tmp_path, "trainer_state.json", json.dumps({"log_history": history})))
    assert "kl_ref/k3/token_mean/response_only" in run.absent
    assert "beta" in run.absent["kl_ref/k3/token_mean/response_only"][0]


def test_trl_first_passes_do_not_halve_the_clip_fraction(tmp_path):
    history = [
        {
            "step": i,
            "reward": r,
            "clip_ratio/region_mean": 0.2 * (i % 2),
            "completions/mean_length": 80.0,
        }
        for i, r, _ in rows()
    ]
    run = read(written(tmp_path, "trainer_state.json", json.dumps({"log_history": history})))
    assert by_source(run, "clip_ratio/region_mean").values.tolist() == [0.2] * 10


def test_adv_std_is_derived_from_zero_variance_groups_with_the_ddof_factor(tmp_path):
    history = [
        {"step": i, "reward": r, "frac_reward_zero_std": 0.36, "completions/mean_length": 80.0}
        for i, r, _ in rows()
    ]
    written(tmp_path, "config.yaml", "num_generations: 4\nbeta: 0.04\nlearning_rate: 1e-6\n")
    run = read(written(tmp_path, "trainer_state.json", json.dumps({"log_history": history})))
    curve = run.curves["adv_std/from_zero_std"]
    assert curve.values[0] == pytest.approx(0.8 * np.sqrt(3 / 4))
    assert curve.metric.derived_from == ("groups/zero_std_frac",)
    written(tmp_path, "config.yaml", "num_generations: 4\nscale_rewards: none\n")
    assert "adv_std/from_zero_std" not in read(tmp_path / "trainer_state.json").curves, (
        "without the division the identity does not hold"
    )


def test_printed_configurations_of_trl_and_verl(tmp_path):
    trl = (
        "GRPOConfig(\n_n_gpu=1,\nbeta=0.04,\nlearning_rate=1e-06,\nnum_generations=8,\ntemperature=0.9,\n)\n"
        + "".join(
            f"{{'loss': 0.0, 'reward': {r}, 'completion_length': 80.0}}\n" for _, r, _ in rows()
        )
    )
    run = read(written(tmp_path, "a.log", trl))
    assert (
        run.setting("lr"),
        run.setting("kl_coef"),
        run.setting("group_size"),
        run.setting("temperature"),
    ) == (1e-6, 0.04, 8, 0.9)
    assert run.setting("entropy_coef") is None, "unknown stays unknown"
    verl = (
        "(main pid=1) {'actor_rollout_ref': {'actor': {'ppo_mini_batch_size': 64,\n(main pid=1)   'ppo_epochs': 2, 'optim': {'lr': 1e-06}},\n(main pid=1)   'rollout': {'n': 5, 'temperature': 1.0}},\n(main pid=1)  'data': {'train_batch_size': 256}}\n"
        + "".join(f"step:{i} - critic/score/mean:{r} - actor/entropy:{e}\n" for i, r, e in rows())
    )
    run = read(written(tmp_path, "b.log", verl))
    assert (run.setting("lr"), run.setting("group_size"), run.setting("prompts_per_step")) == (
        1e-6,
        5,
        256,
    )
    assert run.setting("updates_per_batch") == 8, "two epochs over four minibatches"
    run = read(
        written(
            tmp_path,
            "c.log",
            "python -m verl.trainer.main_ppo actor_rollout_ref.actor.optim.lr=2e-6 \\\n"
            + verl.split("\n", 4)[4],
        )
    )
    assert run.setting("lr") == 2e-6


def test_a_generation_used_for_several_steps_counts_as_several_updates(tmp_path):
    rows_text = "".join(
        f"{{'loss': 0.0, 'reward': {r}, 'completion_length': 80.0}}\n" for _, r, _ in rows()
    )
    for stated, wanted in (
        ("steps_per_generation=8,\ngradient_accumulation_steps=2,\nnum_iterations=2", 8),
        ("steps_per_generation=None,\nnum_iterations=2", 2),
        ("steps_per_generation=auto", None),
    ):
        run = read(written(tmp_path, "a.log", f"GRPOConfig(\n{stated},\n)\n{rows_text}"))
        assert run.setting("updates_per_batch") == wanted, stated


def test_a_folder_is_one_run_with_its_newest_state_and_checkpoints(tmp_path):
    for step, n in ((10, 10), (20, 20)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        history = [{"step": i, "reward": r, "completions/mean_length": 80.0} for i, r, _ in rows(n)]
        written(
            tmp_path / f"checkpoint-{step}",
            "trainer_state.json",
            json.dumps({"log_history": history}),
        )
    written(tmp_path / "checkpoint-10", "model.safetensors", "x")
    run = read(tmp_path)
    assert run.last == 20 and len(run.sources) == 1
    assert [(c.step, bool(c.missing)) for c in run.checkpoints] == [(10, False), (20, True)]


def test_folders_below_are_runs_of_their_own(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, "train.log", "".join(f"[{i}] reward={r}\n" for i, r, _ in rows()))
    assert sorted(run.name for run in read_all(tmp_path)) == ["a", "b"]
    with pytest.raises(UnreadableInput, match="2 runs"):
        read(tmp_path)


def test_an_unknown_name_can_be_mapped(tmp_path):
    path = written(
        tmp_path, "run.log", "".join(f"[{i}] reward={r} my/weird={e}\n" for i, r, e in rows())
    )
    assert "my/weird" in read(path).unread_keys
    run = read(path, mapping=parse_mapping(["entropy=my/weird"]))
    assert by_source(run, "my/weird").metric.name == "entropy/unknown"
    with pytest.raises(BadUsage, match="entropi") as trouble:
        parse_mapping(["entropi=my/weird"])
    assert "entropy" in trouble.value.hint


def test_other_encodings(tmp_path):
    text = "".join(f"[{i}] reward={r}\r\n" for i, r, _ in rows())
    for name, data in (
        ("bom.log", b"\xef\xbb\xbf" + text.encode()),
        ("utf16.log", text.encode("utf-16")),
        ("mixed.log", "损失\n".encode("gbk") + text.encode() + b"\xff\xfe\x00"[:2]),
    ):
        (tmp_path / name).write_bytes(data)
        assert read(tmp_path / name).logged == 20, name


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("empty.log", b"", "it is empty"),
        ("blank.log", b"\n \n", "blank"),
        ("run.log.gz", b"\x1f\x8b\x08\x00aaaa", "gzip"),
        ("model.bin", b"\x00\x01\x02\x03" * 50, "binary"),
        ("run.wandb", b":W&B\xe1\xbe\x00", "wandb"),
        ("x.parquet", b"PAR1aaaa", "Parquet"),
        ("cut.json", b'{"log_history": 3, "a"', "broken JSON"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UnreadableInput, match=says) as trouble:
        read(tmp_path / name)
    assert trouble.value.hint and name in str(trouble.value)


def test_missing_folder_empty_folder_and_no_permission(tmp_path):
    with pytest.raises(UnreadableInput, match="no such file"):
        read(tmp_path / "nothing.log")
    with pytest.raises(UnreadableInput, match="no log in this folder"):
        read(tmp_path)
    path = written(tmp_path, "locked.log", "[1] reward=1\n")
    path.chmod(0)
    if os.geteuid() != 0:
        with pytest.raises(UnreadableInput, match="permission"):
            read(path)


def test_a_truncated_state_file_still_gives_its_whole_rows(tmp_path):
    whole = json.dumps({"log_history": [{"step": i, "reward": r} for i, r, _ in rows()]})
    assert read(written(tmp_path, "trainer_state.json", whole[:-60])).logged >= 17


def test_a_very_long_line_is_passed_over_and_the_rows_around_it_are_read(tmp_path):
    path = tmp_path / "run.log"
    with path.open("wb") as stream:
        stream.write(b"[1] reward=0.1\n")
        for _ in range(64):
            stream.write(b"x" * (1 << 20))
        stream.write(b"\n[2] reward=0.2\n[3] reward=0.3\n")
    run = read(path)
    assert by_source(run, "reward").steps.tolist() == [1, 2, 3]
    assert run.holds["overlong lines"] == 1


def test_a_log_of_another_program_is_no_run(tmp_path):
    text = "".join(
        f'127.0.0.1 - - [12/Mar/2026:10:00:{i:02d} +0000] "GET /step/{i} HTTP/1.1" 200 size=12\n'
        for i in range(40)
    )
    run = read(written(tmp_path, "access.log", text))
    assert not run.curves and run.holds["lines"] == 40


def test_the_tables_are_whole():
    for name, table in tables().items():
        assert table.metric and table.knob and table.log, name
        for rule in table.metric:
            assert rule.name and rule.definition and rule.unit, (name, rule.key)
            assert not rule.zero or (rule.zero_en and rule.zero_zh), (name, rule.key)
            assert bool(rule.en) == bool(rule.zh), (name, rule.key)


def test_standard_input(tmp_path, monkeypatch):
    path = written(tmp_path, "x.log", "".join(f"[{i}] reward={r}\n" for i, r, _ in rows()))
    with path.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        assert read_all("-")[0].name == "stdin"


def test_a_text_column_costs_no_row(tmp_path):
    text = "\n".join(json.dumps({"event": "step", "step": i, "reward": r}) for i, r, _ in rows())
    assert read(written(tmp_path, "a.jsonl", text + '\n{"event": "save", "step": 20}')).logged == 20


def test_signs_and_counts_are_put_right_as_the_tables_say():
    """Every conversion a table names changes the numbers as it says."""
    from array import array

    from klinic.run import Setting
    from klinic.sources.rows import Column
    from klinic.trainers.convert import convert

    table = tables()["verl"]
    column = Column()
    column.steps, column.values = array("q", [1, 2]), array("d", [32.0, 64.0])
    config = {"prompts_per_step": Setting("prompts_per_step", "data.train_batch_size", 128, "x")}
    done = convert({"batch/solve_none": column}, table, config, {})
    assert done.curves["groups/all_wrong_frac"].values.tolist() == [0.25, 0.5]
    assert (
        done.curves["groups/all_wrong_frac"].metric.conversion
        == "count divided by prompts_per_step"
    )
    assert not convert({"batch/solve_none": column}, table, {}, {}).curves, (
        "a count of unknown how many is no share"
    )


def test_entropy_by_position_is_read_from_a_list_and_lists_of_samples_are_not(tmp_path):
    text = "".join(
        json.dumps(
            {
                "step": i,
                "reward": r,
                "rewards": [r, 1.0, 0.0],
                "entropy_by_position": [2.0, 1.5, 1.0, 1.2, 0.8, 0.6, None if i == 3 else 0.4, 0.1],
            }
        )
        + "\n"
        for i, r, _ in rows()
    )
    run = read(written(tmp_path, "metrics.jsonl", text))
    assert run.curves["entropy_by_position/0"].values[0] == 2.0
    assert len(run.curves["entropy_by_position/6"].values) == 19
    assert run.curves["entropy_at/start"].values[0] == 2.0
    assert run.curves["entropy_at/middle"].values[0] == pytest.approx(np.mean([1, 1.2, 0.8, 0.6]))
    assert run.curves["entropy_at/end"].values[-1] == 0.1
    assert not any("rewards" in c.metric.source_key for c in run.curves.values())
    assert not any("rewards" in key for key in run.unread_keys)


def test_a_row_of_names_and_numbers_is_no_header_of_a_table(tmp_path):
    path = tmp_path / "train.log"
    path.write_text(
        "".join(f"step {s} | reward {s / 90:.4f} | entropy 1.5\n" for s in range(1, 61))
    )
    run = read(path)
    assert run.logged == 60
    assert run.curves["entropy/unknown"].steps.tolist() == list(range(1, 61))


def test_rows_in_memory_are_read_as_the_file_that_holds_them(tmp_path):
    from klinic.read import read_rows

    state = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse" / "trainer_state.json"
    rows = json.loads(state.read_text())["log_history"]
    run, stored = read_rows(rows, config={"learning_rate": 1e-3}), read(state)
    assert run.curves.keys() == stored.curves.keys() and run.trainer.name == "trl"
    for name, curve in run.curves.items():
        assert curve.values.tolist() == stored.curves[name].values.tolist(), name
    assert run.setting("lr") == 1e-3 and run.last == stored.last
