"""ClearML's offline session, and Aim's store, which is only named."""

from __future__ import annotations

import json

import pytest

from klinic.errors import UnreadableInput
from klinic.read import read


def event(title, series, step, value, kind="training_stats_scalar"):
    return {
        "type": kind,
        "metric": title,
        "variant": series,
        "iter": step,
        "value": value,
        "task": "t",
        "timestamp": 1,
    }


def test_an_offline_session(tmp_path):
    lines = [
        [
            event("reward", "train", i, i / 8),
            event("kl", "kl", i, 0.5),
            event("loss", "actor", i, 1.0),
            event("p", "q", i, None, "plot"),
        ]
        for i in range(40)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path = tmp_path / "metrics.jsonl"
    for cut, whole in ((1, 40), (20, 39)):
        path.write_text(text[:-cut])
        run = read(tmp_path)
        found = {c.metric.source_key: c for c in run.curves.values()}
        assert found["train/reward"].steps.tolist() == list(range(whole))
        assert found["train/reward"].values.tolist() == [i / 8 for i in range(whole)]
        assert len(found["kl"].values) == whole


def test_a_store_of_aims_says_how_to_export_it(tmp_path):
    (tmp_path / ".aim").mkdir()
    for place in (tmp_path, tmp_path / ".aim"):
        with pytest.raises(UnreadableInput, match="only Aim itself") as trouble:
            read(place)
        assert "CSV" in trouble.value.hint
