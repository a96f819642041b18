"""Files that TensorBoard's and wandb's own libraries write, value for value."""

from __future__ import annotations

import math
import os
import random

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
