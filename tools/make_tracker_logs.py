"""Writes the small tracker logs under tests/runs/ with the trackers' own libraries (the torch extra).

The numbers are those of the demo's real run (src/klinic/demo), so that every format must read as the same curves.

    python tools/make_tracker_logs.py
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
STATE = HERE / "src/klinic/demo/trl-entropy-collapse/trainer_state.json"
RUNS = HERE / "tests/runs"
KEYS = ("reward", "entropy", "frac_reward_zero_std")
WANDB_STEPS = 40  # the file repeats a summary behind every row
SETTINGS = {"learning_rate": 1e-3, "num_generations": 8, "temperature": 1.0}


def rows():
    """(step, {key: value}) of the demo run."""
    for row in json.loads(STATE.read_text())["log_history"]:
        if "loss" in row:
            yield row["step"], {f"train/{key}": row[key] for key in KEYS if key in row}


def tensorboard(folder: Path) -> None:
    """As transformers' callback does it: scalars under train/, the arguments as a text."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.plugins.text.metadata import create_summary_metadata
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util.tensor_util import make_tensor_proto

    writer = EventFileWriter(str(folder))
    args = json.dumps({"trainer": "GRPOTrainer", **SETTINGS}, indent=2)
    said = summary_pb2.Summary.Value(
        tag="args/text_summary",
        metadata=create_summary_metadata("args", ""),
        tensor=make_tensor_proto([args.encode()]),
    )
    events = [(0, said)]
    for step, row in rows():
        events += [(step, summary_pb2.Summary.Value(tag=k, simple_value=v)) for k, v in row.items()]
    for n, (step, value) in enumerate(events):
        event = event_pb2.Event(wall_time=1.7e9 + n / 10, step=step)
        event.summary.value.append(value)
        writer.add_event(event)
    writer.close()
    (made,) = folder.iterdir()
    made.rename(folder / "events.out.tfevents.1700000000.host.1.0")


def wandb(folder: Path) -> None:
    """As transformers' callback does it, offline: train/global_step beside the metrics."""
    import wandb as library

    with tempfile.TemporaryDirectory() as place:
        settings = library.Settings(
            mode="offline",
            host="host",
            x_disable_meta=True,
            x_disable_stats=True,
            disable_git=True,
            disable_code=True,
            console="off",
            silent=True,
        )
        run = library.init(
            dir=place,
            project="demo",
            id="demorun1",
            name="demo",
            config=SETTINGS,
            settings=settings,
        )
        run.define_metric("train/global_step")
        run.define_metric("*", step_metric="train/global_step", step_sync=True)
        for step, row in rows():
            if step <= WANDB_STEPS:
                run.log({"profiling/seconds": 0.5})
                run.log({**row, "train/global_step": step})
        run.finish()
        library.teardown()  # only then is the last block on the disk
        (made,) = Path(place).rglob("*.wandb")
        target = folder / "wandb" / "offline-run-20260101_000000-demorun1"
        target.mkdir(parents=True)
        shutil.copy(made, target / "run-demorun1.wandb")


if __name__ == "__main__":
    os.environ["WANDB_SILENT"] = "true"
    for name, make in (("tensorboard", tensorboard), ("wandb", wandb)):
        if sys.argv[1:] in ([], [name]):
            shutil.rmtree(RUNS / name / "demo", ignore_errors=True)
            (RUNS / name / "demo").mkdir(parents=True)
            make(RUNS / name / "demo")
