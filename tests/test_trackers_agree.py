"""A real run gives the same curves, and the same diagnosis, from whichever tracker's files it is read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tracker_databases import mlflow_database, mlflow_folder, trackio_database
from tracker_files import swanlab_file, swanlab_scalar, swanlab_start

import klinic
from klinic.read import read
from klinic.sources.rows import number

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"


def logged():
    """(step, {key: value}) as transformers hands them to a tracker: "train/" before each key."""
    for row in json.loads((DEMO / "trainer_state.json").read_text())["log_history"]:
        values = {
            f"train/{key}": found
            for key, value in row.items()
            if key != "step" and (found := number(value)) is not None
        }
        yield row["step"], values


def as_mlflow_folder(place):
    columns = {}
    for step, row in logged():
        for key, value in row.items():
            columns.setdefault(key, []).append((1000 * step, value, step))
    return mlflow_folder(place / "r", columns)


def as_mlflow_database(place):
    points = [
        ("r", key, step, value, 1000 * step, 0)
        for step, row in logged()
        for key, value in row.items()
    ]
    points = list(dict.fromkeys(points))  # MLflow, too, keeps of two that are all equal only one
    return mlflow_database(place / "mlflow.db", [("r", "x", "")], points)


def as_trackio(place):
    rows = [
        ("r", "x", n, {**row, "train/global_step": step}) for n, (step, row) in enumerate(logged())
    ]
    trackio_database(place / "p.db", rows).close()
    return place / "p.db"


def as_swanlab(place):
    records = [
        swanlab_scalar(key, step, value) for step, row in logged() for key, value in row.items()
    ]
    (place / "run-a.swanlab").write_bytes(swanlab_file([swanlab_start("x"), *records]))
    return place / "run-a.swanlab"


def as_clearml(place):
    with (place / "metrics.jsonl").open("w") as out:
        for step, row in logged():
            events = [
                {
                    "type": "training_stats_scalar",
                    "metric": key.removeprefix("train/"),
                    "variant": "train",
                    "iter": step,
                    "value": value,
                }
                for key, value in row.items()
            ]
            out.write(json.dumps(events) + "\n")
    return place / "metrics.jsonl"


def as_parquet(place):
    duckdb = pytest.importorskip("duckdb", reason="the parquet extra is not installed")
    points = [(step, key, value) for step, row in logged() for key, value in row.items()]
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        db.execute("CREATE TABLE t (step BIGINT, key VARCHAR, value DOUBLE)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?)", points)
        db.execute(f"COPY t TO '{place / 'x.parquet'}' (FORMAT parquet)")
    return place / "x.parquet"


@pytest.mark.parametrize(
    "written",
    [as_mlflow_folder, as_mlflow_database, as_trackio, as_swanlab, as_clearml, as_parquet],
)
def test_a_real_run(tmp_path, written):
    path = written(tmp_path)
    ours, theirs = read(path, trainer="trl"), read(DEMO / "trainer_state.json", trainer="trl")
    assert ours.curves.keys() == theirs.curves.keys() and len(ours.curves) > 10
    for name, curve in theirs.curves.items():
        np.testing.assert_array_equal(ours.curves[name].steps, curve.steps)
        np.testing.assert_array_equal(ours.curves[name].values, curve.values)
    answer = klinic.diagnose(path, trainer="trl")
    assert answer.status == "failing" and answer.findings[0].failure == "entropy-collapse"
