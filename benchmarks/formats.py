"""CPU seconds and memory of reading 10,000 steps x 50 metrics, by format, beside the library that wrote the format.

    python benchmarks/formats.py [--runs 5] [--steps 10000] [--only tensorboard,wandb] [--wandb-python /path/to/python]
    python benchmarks/formats.py --verl 1000         # a console log of so many megabytes beside grep -a "step:"

Each reading is a whole process, klinic's and the library's in turn; the medians and the median of the ratios of the pairs
are printed. wandb removed its Python reader in 0.31: --wandb-python names an interpreter that has an older one (0.21).
Files are written by the writers of the tests, those of TensorBoard by its own library.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from speed import measure
from tracker_databases import mlflow_database, mlflow_folder, trackio_database
from tracker_files import (
    history,
    swanlab_file,
    swanlab_scalar,
    swanlab_start,
    wandb_file,
)

KEYS = [
    "reward",
    "entropy",
    "kl",
    "clip_ratio/region_mean",
    "completions/mean_length",
    "completions/clipped_ratio",
    "grad_norm",
    "learning_rate",
    "frac_reward_zero_std",
    "reward_std",
] + [f"rewards/part_{n}/mean" for n in range(40)]


def rows(steps: int) -> Iterator[tuple[int, dict[str, float]]]:
    """(step, {key: value}) of a quiet run."""
    rnd = random.Random(1)
    for step in range(1, steps + 1):
        yield (
            step,
            {
                key: 0.5 + 0.4 * math.sin(n + step / 4000) + rnd.gauss(0, 0.05)
                for n, key in enumerate(KEYS)
            },
        )


def tensorboard(place: Path, steps: int) -> Path:
    """By the library: the tests' own writer computes its checksums a bit at a time."""
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(place / "tb"), max_queue_size=1000)
    for step, row in rows(steps):
        for key, value in row.items():
            held = summary_pb2.Summary.Value(tag=f"train/{key}", simple_value=value)
            event = event_pb2.Event(wall_time=1.7e9 + step, step=step)
            event.summary.value.append(held)
            writer.add_event(event)
    writer.close()
    return place / "tb"


def wandb(place: Path, steps: int) -> Path:
    records = [
        history(
            {**{f"train/{k}": v for k, v in row.items()}, "train/global_step": step, "_step": step}
        )
        for step, row in rows(steps)
    ]
    path = place / "run-x.wandb"
    path.write_bytes(wandb_file(records))
    return path


def mlflow_files(place: Path, steps: int) -> Path:
    columns: dict[str, list[tuple[int, float, int]]] = {}
    for step, row in rows(steps):
        for key, value in row.items():
            columns.setdefault(key, []).append((1000 * step, value, step))
    return mlflow_folder(place / "mlruns" / "1" / ("a" * 32), columns)


def mlflow_sqlite(place: Path, steps: int) -> Path:
    points = [("r", k, s, v, 1000 * s, 0) for s, row in rows(steps) for k, v in row.items()]
    return mlflow_database(place / "mlflow.db", [("r", "x", "")], points)


def trackio(place: Path, steps: int) -> Path:
    logged = [
        ("r", "x", n, {**row, "train/global_step": s}) for n, (s, row) in enumerate(rows(steps))
    ]
    trackio_database(place / "p.db", logged).close()
    return place / "p.db"


def swanlab(place: Path, steps: int) -> Path:
    records = [swanlab_scalar(k, s, v) for s, row in rows(steps) for k, v in row.items()]
    path = place / "run-a.swanlab"
    path.write_bytes(swanlab_file([swanlab_start("x"), *records]))
    return path


def parquet(place: Path, steps: int) -> Path:
    import duckdb

    table = csv_table(place, steps)
    path = place / "wide.parquet"
    with duckdb.connect(":memory:") as db:
        db.execute(f"COPY (SELECT * FROM '{table}') TO '{path}' (FORMAT parquet)")
    return path


def csv_table(place: Path, steps: int) -> Path:
    path = place / "progress.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["step", *KEYS])
        for step, row in rows(steps):
            writer.writerow([step, *row.values()])
    return path


def jsonl(place: Path, steps: int) -> Path:
    path = place / "metrics.jsonl"
    path.write_text("".join(json.dumps({"step": s, **row}) + "\n" for s, row in rows(steps)))
    return path


def trl_state(place: Path, steps: int) -> Path:
    path = place / "trainer_state.json"
    path.write_text(
        json.dumps({"log_history": [{**row, "step": s} for s, row in rows(steps)]}, indent=2)
    )
    return path


def trl_console(place: Path, steps: int) -> Path:
    path = place / "stdout.log"
    path.write_text("".join(f"{ {**row, 'epoch': s / steps} }\n" for s, row in rows(steps)))
    return path


def verl_console(place: Path, steps: int) -> Path:
    path = place / "verl.log"
    path.write_text(
        "".join(
            f"(TaskRunner pid=12) step:{s} - "
            + " - ".join(f"{k}:{v}" for k, v in row.items())
            + "\n"
            for s, row in rows(steps)
        )
    )
    return path


def pairs_console(place: Path, steps: int) -> Path:
    path = place / "train.log"
    path.write_text(
        "".join(
            f"step {s} | " + " | ".join(f"{k} {v:.6f}" for k, v in row.items()) + "\n"
            for s, row in rows(steps)
        )
    )
    return path


def clearml(place: Path, steps: int) -> Path:
    path = place / "metrics.jsonl"
    kind = "training_stats_scalar"
    with path.open("w") as out:
        for step, row in rows(steps):
            events = [
                {"type": kind, "metric": k, "variant": "train", "iter": step, "value": v}
                for k, v in row.items()
            ]
            out.write(json.dumps(events) + "\n")
    return path


def long_verl(place: Path, megabytes: int) -> Path:
    """2,000 metric lines among what workers print: requests, answers, warnings."""
    path, rnd = place / "verl.log", random.Random(1)
    noise = [
        f"(AgentLoopWorker pid={n}) [{n % 4}] INFO 11-0{n % 9} request {rnd.random()} took {rnd.random():.3f} s: "
        + " ".join(
            f"{rnd.choice(('so', 'then', 'we have', 'x ='))} {rnd.randint(0, 999)}"
            for _ in range(30)
        )
        + "\n"
        for n in range(2000)
    ]
    filler = "".join(noise)
    each = megabytes * 1_000_000 // 2000
    with path.open("w") as out:
        for step, row in rows(2000):
            at = rnd.randrange(len(filler) - 1)
            begin = filler.find("\n", at) + 1
            whole = filler[begin:] + filler * (each // len(filler) + 1)
            out.write(whole[: whole.rfind("\n", 0, each) + 1])
            values = " - ".join(f"{key}:{value}" for key, value in row.items())
            out.write(f"(TaskRunner pid=12) step:{step} - {values}\n")
    return path


OURS = "import sys; from klinic.read import read; r = read(sys.argv[1]); assert r.logged, r"
# Each gets every point of every metric into Python as (step, value), as the library offers it.
LIBRARY = {
    tensorboard: """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0}); a.Reload()
print(sum(len([(e.step, e.value) for e in a.Scalars(t)]) for t in a.Tags()["scalars"]))
""",
    wandb: """
import json, sys
from wandb.proto.wandb_internal_pb2 import Record
from wandb.sdk.internal.datastore import DataStore
d = DataStore(); d.open_for_scan(sys.argv[1]); rows = []
while (data := d.scan_data()) is not None:
    r = Record(); r.ParseFromString(data)
    if r.WhichOneof("record_type") == "history":
        rows.append({(i.key or "/".join(i.nested_key)): json.loads(i.value_json) for i in r.history.item})
print(len(rows))
""",
    trackio: """
import os, sys
os.environ["TRACKIO_DIR"] = os.path.dirname(sys.argv[1])
from trackio.sqlite_storage import SQLiteStorage
print(len(SQLiteStorage.get_logs("p", "x")))
""",
    parquet: """
import sys, duckdb
print(len(duckdb.sql(f"SELECT * FROM '{sys.argv[1]}'").fetchall()))
""",
    csv_table: """
import csv, sys
with open(sys.argv[1]) as f: print(len([{k: float(v) for k, v in row.items()} for row in csv.DictReader(f)]))
""",
    jsonl: """
import json, sys
with open(sys.argv[1]) as f: print(len([json.loads(line) for line in f]))
""",
    trl_state: """
import json, sys
with open(sys.argv[1]) as f: print(len(json.load(f)["log_history"]))
""",
}
FORMATS: list[Callable[[Path, int], Path]] = [
    tensorboard,
    wandb,
    mlflow_files,
    mlflow_sqlite,
    trackio,
    swanlab,
    parquet,
    clearml,
    csv_table,
    jsonl,
    trl_state,
    trl_console,
    verl_console,
    pairs_console,
]


def paired(ours: list[str], theirs: list[str] | None, runs: int) -> str:
    """One line: the medians, and the median ratio of the pairs."""
    a, b = [], []
    for _ in range(runs):
        a.append(measure(ours))
        if theirs:
            b.append(measure(theirs))
    line = f"klinic {statistics.median(c for c, _ in a):.2f} CPU s, {max(m for _, m in a):.0f} MB"
    if b:
        ratio = statistics.median(y[0] / x[0] for x, y in zip(a, b, strict=True))
        line += f"; library {statistics.median(c for c, _ in b):.2f} CPU s, {max(m for _, m in b):.0f} MB; {ratio:.2f} times ours"
    return line


def works(command: list[str]) -> bool:
    """Whether a command ends well; where not, the last line it said is printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"  no comparison: {(done.stderr.strip().splitlines() or [''])[-1]}")
    return done.returncode == 0


def main() -> None:
    """Print one line a format."""
    cli = argparse.ArgumentParser()
    cli.add_argument("--runs", type=int, default=5)
    cli.add_argument("--steps", type=int, default=10_000)
    cli.add_argument("--only", default="")
    cli.add_argument("--wandb-python", default=sys.executable)
    cli.add_argument("--verl", type=int, help="megabytes of a console log, read beside grep")
    args = cli.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if args.verl:
        with tempfile.TemporaryDirectory() as folder:
            path = str(long_verl(Path(folder), args.verl))
            diagnosed = [sys.executable, "-m", "klinic", "diagnose", path, "--format", "json"]
            # Into a pipe: what goes to /dev/null, grep does not look for.
            grep = ["sh", "-c", 'grep -a "step:" "$0" | cat > /dev/null', path]
            line = paired(diagnosed, grep, args.runs)
            print(f"{args.verl} MB of verl's console: {line.replace('library', 'grep')}")
        return
    wanted = set(filter(None, args.only.split(",")))
    for write in FORMATS:
        if wanted and write.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = str(write(Path(folder), args.steps))
            code, python = LIBRARY.get(write), sys.executable
            if write is wandb:
                python = args.wandb_python
            ours = [sys.executable, "-c", OURS, path]
            if not works(ours):
                raise SystemExit(f"{write.__name__}: klinic does not read it")
            theirs = [python, "-c", code, path] if code else None
            if theirs and not works(theirs):
                theirs = None
            print(f"{write.__name__}: {paired(ours, theirs, args.runs)}", flush=True)


if __name__ == "__main__":
    main()
