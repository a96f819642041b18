"""Files that the trackers' own libraries write, value for value."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from klinic import sources
from klinic.sources.tensorboard.events import events
from klinic.sources.wandb.history import history

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore"),  # the libraries' own
]


def same(ours, theirs):
    return ours == theirs or (math.isnan(ours) and math.isnan(theirs))


def test_event_files(tmp_path):
    pytest.importorskip("tensorboard", reason="the torch extra is not installed")
    import numpy as np
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.plugins.scalar.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_ndarray, make_tensor_proto

    rnd, writer = random.Random(1), EventFileWriter(str(tmp_path))
    kinds = (np.float16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)
    for step in [*range(200), 2**20, 2**40]:
        values = [
            summary_pb2.Summary.Value(tag=f"train/{'x' * n}", simple_value=value)
            for n, value in enumerate((rnd.random(), 1e30, -1e-30, math.nan, math.inf))
        ]
        values += [
            summary_pb2.Summary.Value(
                tag=f"typed/{kind.__name__}",
                tensor=make_tensor_proto(np.array(rnd.random() * 100, dtype=kind)),
                metadata=create_summary_metadata("a name", "a description"),
            )
            for kind in kinds
        ]
        bars = summary_pb2.HistogramProto(num=step, bucket_limit=[1, 2, 3], bucket=[step, 0, 1])
        values.append(summary_pb2.Summary.Value(tag="weights", histo=bars))
        for value in values:
            event = event_pb2.Event(wall_time=1.7e9 + step, step=step)
            event.summary.value.append(value)
            writer.add_event(event)
    writer.close()
    (path,) = tmp_path.iterdir()
    wanted = []
    for raw in RawEventFileLoader(str(path)).Load():
        event = event_pb2.Event.FromString(raw)
        for value in event.summary.value:
            if value.WhichOneof("value") == "simple_value":
                wanted.append((value.tag, event.step, value.simple_value))
            elif value.WhichOneof("value") == "tensor":
                wanted.append((value.tag, event.step, float(make_ndarray(value.tensor))))
    with path.open("rb") as stream:
        found = events(stream, b"", str(path))
    ours = list(zip((found.tags[n] for n in found.which), found.steps, found.values, strict=True))
    assert len(ours) == len(wanted) == 202 * 12 and not found.broken
    for mine, theirs in zip(ours, wanted, strict=True):
        assert mine[:2] == theirs[:2] and same(mine[2], theirs[2])


def test_wandb_files(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="the torch extra is not installed")
    monkeypatch.setitem(os.environ, "WANDB_SILENT", "true")
    settings = wandb.Settings(
        mode="offline", silent=True, console="off", disable_git=True, x_disable_stats=True
    )
    run = wandb.init(
        dir=tmp_path, project="p", config={"learning_rate": 1e-4, "a": {"b": 2}}, settings=settings
    )
    rnd, wanted = random.Random(1), []
    for step in range(600):
        row = {f"train/metric-{n}": rnd.gauss(0, 10.0**n) for n in range(-8, 9)}
        row |= {"train/nan": math.nan, "train/inf": -math.inf, "train/whole": step**3}
        run.log({**row, "part": {"of": step}, "weights": wandb.Histogram([1, 2, 3]), "said": "x"})
        wanted.append({**row, "part/of": step})
    run.finish()
    wandb.teardown()
    (path,) = tmp_path.rglob("*.wandb")
    with path.open("rb") as stream:
        found = history(stream, stream.read(sources.HEAD_BYTES), str(path))
    assert not found.broken and len(found.rows) == len(wanted)
    for n, (ours, theirs) in enumerate(zip(found.rows, wanted, strict=True)):
        assert ours.pop("_step") == n
        ours = {key: value for key, value in ours.items() if not key.startswith("_")}
        assert ours.keys() == theirs.keys()
        assert all(same(ours[key], float(value)) for key, value in theirs.items())
    assert found.settings["learning_rate"] == 1e-4 and found.settings["a.b"] == 2


def awkward(rnd, step):
    """A row of numbers of every size, and those that are none."""
    row = {f"train/metric-{n}": rnd.gauss(0, 10.0**n) for n in range(-8, 9)}
    return row | {
        "nan": math.nan,
        "inf": math.inf,
        "minus/inf": -math.inf,
        "zero": 0.0,
        "step3": float(step**3),
    }


def points_of(reading):
    return {
        key: list(zip(column.steps, column.values, strict=True))
        for key, column in reading.columns.items()
    }


def same_points(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, points in theirs.items():
        assert [step for step, _ in ours[key]] == [step for step, _ in points], key
        assert all(same(a[1], b[1]) for a, b in zip(ours[key], points, strict=True)), key


@pytest.mark.parametrize("kind", ["folder", "database"])
def test_mlflow(tmp_path, monkeypatch, kind):
    """The store classes themselves, since the whole mlflow (which the database otherwise needs) is 800 MB."""
    pytest.importorskip("mlflow", reason="the torch extra is not installed")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    from mlflow.entities import Metric, Param

    if kind == "folder":
        from mlflow.store.tracking.file_store import FileStore

        place = tmp_path / "mlruns"
        store = FileStore(str(place), place.as_uri())
    else:
        pytest.importorskip("alembic", reason="the torch extra is not installed")
        from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

        place = tmp_path / "mlflow.db"
        store = SqlAlchemyStore(f"sqlite:///{place}", (tmp_path / "artifacts").as_uri())
    rnd, experiment, ids = random.Random(1), store.create_experiment("e"), {}
    for name in ("one", "two"):
        run = store.create_run(experiment, "u", 1000, [], name).info.run_id
        ids[name] = run
        for step in range(100):
            batch = [
                Metric(k, v, 1_700_000_000_000 + step, step) for k, v in awkward(rnd, step).items()
            ]
            store.log_batch(run, batch, [], [])
        store.log_batch(run, [], [Param("args/lr", "0.5")], [])
    found = {}
    if kind == "folder":
        for run in ids.values():
            reading = sources.read_file(place / experiment / run)
            found[reading.name] = reading
    else:
        found = sources.read_file(place).parts
    assert found.keys() == ids.keys()
    for name, run in ids.items():
        ours = points_of(found[name])
        theirs = {
            key: [
                (m.step, m.value)
                for m in sorted(store.get_metric_history(run, key), key=lambda m: m.step)
            ]
            for key in ours
        }
        if (
            kind == "database"
        ):  # the library gives back the largest float, which is how it stores infinity
            for key, value in (("inf", math.inf), ("minus/inf", -math.inf)):
                assert abs(theirs[key][0][1]) > 1e308
                theirs[key] = [(step, value) for step, _ in theirs[key]]
        assert len(ours) == 22
        same_points(ours, theirs)
        assert found[name].config["args.lr"][0] == "0.5"


def test_trackio(tmp_path):
    pytest.importorskip("trackio", reason="the torch extra is not installed")
    code = """
import json, math, random, sys
import trackio
from test_tracker_oracles import awkward
from trackio.sqlite_storage import SQLiteStorage
rnd = random.Random(1)
for name in ("one", "two"):
    trackio.init(project="p", name=name, config={"lr": 0.5, "a": {"b": 2}}, embed=False)
    for step in range(60):
        trackio.log({**awkward(rnd, step), "said": "x"}, step=2 * step)
    trackio.log({"table": trackio.Table(data=[[1, 2]], columns=["a", "b"])})
    trackio.alert("title", "text")
    trackio.finish()
with open(sys.argv[1], "w") as out:
    json.dump({name: SQLiteStorage.get_logs("p", name) for name in ("one", "two")}, out)
"""
    out = tmp_path / "theirs.json"
    subprocess.run(
        [sys.executable, "-c", code, str(out)],
        env={**os.environ, "TRACKIO_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parent)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    readings = sources.read_file(tmp_path / "p.db").parts
    for name, logs in json.loads(out.read_text()).items():
        theirs = {}
        for row in logs:
            for key, value in row.items():
                if isinstance(value, float) or value in ("NaN", "Infinity", "-Infinity"):
                    theirs.setdefault(key, []).append((row["step"], float(value)))
        ours = points_of(readings[name])
        assert len(ours) == 22 and len(ours["zero"]) == 60
        same_points(ours, theirs)
        assert readings[name].config["a.b"][0] == 2 and readings[name].config["lr"][0] == 0.5


def test_swanlab(tmp_path, monkeypatch):
    swanlab = pytest.importorskip("swanlab", reason="the torch extra is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    run = swanlab.init(
        project="p",
        experiment_name="mine",
        config={"lr": 0.5},
        mode="offline",
        logdir=str(tmp_path / "s"),
    )
    rnd, wanted = random.Random(1), {}
    for step in range(200):
        row = awkward(rnd, step)
        swanlab.log({**row, "said": swanlab.Text("x")}, step=2 * step)
        for key, value in row.items():
            wanted.setdefault(key, []).append((2 * step, value))
    del run
    swanlab.finish()
    (path,) = tmp_path.rglob("*.swanlab")
    reading = sources.read_file(path)
    assert reading.name == "mine" and "broken records" not in reading.holds
    same_points(points_of(reading), wanted)
    from klinic.read import read

    assert read(tmp_path / "s").setting("lr") == 0.5
