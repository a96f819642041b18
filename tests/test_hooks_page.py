"""The recipes of docs/hooks.md, run as they stand on the page."""

from __future__ import annotations

import json
import re
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import klinic
from klinic.read import read

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```\w+\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M)


def test_both_languages_show_the_same_code():
    assert blocks("hooks.md") == blocks("hooks.zh.md") and len(blocks("hooks.md")) == 4


def test_the_plain_loop_of_the_page_learns_and_is_diagnosed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    block = blocks("hooks.md")[0]
    assert len([line for line in block.splitlines() if line]) == 15
    exec(compile(block, "docs/hooks.md", "exec"), {})
    run = read(tmp_path / "run")
    assert run.logged == 60 and not run.unread_keys and run.setting("group_size") == 8
    acc = run.curves["acc/seq_mean"].values
    assert acc[:5].mean() < 0.6 and acc[-5:].mean() > 0.9
    answer = klinic.diagnose(run)
    assert not [
        f.failure for f in answer.findings if f.status == "present" and f.severity != "caution"
    ]


def test_the_function_for_slime_records_what_it_is_handed(tmp_path):
    class Status(Enum):
        COMPLETED, TRUNCATED = "completed", "truncated"

    def sample(i: int) -> SimpleNamespace:
        return SimpleNamespace(
            group_index=i // 4, prompt=f"p{i // 4}", response=f"r{i}", reward=float(i % 4 == 0),
            effective_response_length=3 + i, get_reward_value=lambda args: float(i % 4 == 0),
            status=Status.TRUNCATED if i == 7 else Status.COMPLETED,
        )  # fmt: skip

    space: dict = {}
    exec(compile(blocks("hooks.md")[3], "docs/hooks.md", "exec"), space)
    args = SimpleNamespace(save=str(tmp_path), lr=1e-6)
    for n in range(3):
        assert not space["record"](n, args, [sample(i) for i in range(8)], {}, 12.5)
    space["recorder"].close()
    run = read(tmp_path / "klinic")
    assert run.curves["trunc/frac_finish_length"].values.tolist() == [1 / 8] * 3
    assert run.curves["groups/zero_std_frac"].values[0] == 0 and run.setting("lr") == 1e-6
    assert run.curves["time/rollout_s"].values[0] == 12.5
    kept = (tmp_path / "klinic" / "rollouts.jsonl").read_text().splitlines()
    assert len(kept) == 24 and json.loads(kept[0])["reward"] == 1
