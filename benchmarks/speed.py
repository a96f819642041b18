"""Whole-process CPU and memory of `klinic diagnose`, paired with another program where one is named.

    python benchmarks/speed.py [--against '/path/to/rl-doctor diagnose {} --format json'] [--runs 5]

Two inputs: a 200-step trainer_state.json and a JSONL of 50,000 steps x 12 metrics; and `klinic explain`. Runs are
alternated; the medians and their ratio are printed, since single times on a shared machine say little.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

KEYS = (
    "reward",
    "acc",
    "entropy",
    "kl",
    "adv_std",
    "clip_frac",
    "ratio_mean",
    "len",
    "trunc",
    "grad_norm",
    "loss",
    "lr",
)


def rows(n: int) -> Iterator[dict[str, float]]:
    """A healthy run of n steps."""
    rnd = random.Random(1)
    for i in range(n):
        t = i / n
        level = (
            0.41 + 0.44 * t,
            0.21 + 0.36 * t,
            1.84 - 0.35 * t,
            0.002 + 0.043 * t,
            1.03 - 0.37 * t,
            0.04 * t,
            1.0,
            78 + 74 * t,
            0.01,
            0.8,
            0.0,
            1e-6,
        )
        yield {
            "step": i + 1,
            **{
                key: value * (1 + rnd.gauss(0, 0.02))
                for key, value in zip(KEYS, level, strict=True)
            },
        }


def state(n: int) -> dict[str, object]:
    """The same under TRL's names."""
    names = {
        "len": "completions/mean_length",
        "trunc": "completions/clipped_ratio",
        "clip_frac": "clip_ratio/region_mean",
        "acc": "rewards/acc/mean",
        "lr": "learning_rate",
    }
    history = []
    for row in rows(n):
        renamed = {
            names.get(key, key): value
            for key, value in row.items()
            if key not in ("adv_std", "ratio_mean")
        }
        renamed["frac_reward_zero_std"] = max(0.0, 1 - row["adv_std"] ** 2)
        history.append(renamed)
    return {"global_step": n, "logging_steps": 1, "log_history": history}


def measure(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident megabytes of one whole process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print one line an input."""
    cli = argparse.ArgumentParser()
    cli.add_argument("--against")
    cli.add_argument("--runs", type=int, default=5)
    args = cli.parse_args()
    klinic = [sys.executable, "-m", "klinic"]
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "trainer_state.json", Path(folder) / "long.jsonl"
        small.write_text(json.dumps(state(200)))
        with large.open("w") as stream:
            for row in rows(50_000):
                stream.write(json.dumps(row) + "\n")
        for name, place in (
            ("200 steps, trainer_state.json", small),
            ("50,000 steps x 12, JSONL", large),
        ):
            ours, theirs = [], []
            for _ in range(args.runs if place is small or not args.against else min(args.runs, 1)):
                ours.append(measure([*klinic, "diagnose", str(place), "--format", "json"]))
                if args.against:
                    theirs.append(
                        measure([part.format(place) for part in shlex.split(args.against)])
                    )
            line = f"{name}: klinic {statistics.median(c for c, _ in ours):.2f} CPU s, {max(m for _, m in ours):.0f} MB"
            if theirs:
                ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs, strict=True))
                line += f"; other {statistics.median(c for c, _ in theirs):.2f} CPU s, {max(m for _, m in theirs):.0f} MB; CPU ratio {ratio:.2f}"
            print(line, flush=True)
        explain = [measure([*klinic, "explain", "entropy-collapse"]) for _ in range(args.runs)]
        print(
            f"explain: {statistics.median(c for c, _ in explain):.2f} CPU s, {max(m for _, m in explain):.0f} MB"
        )


if __name__ == "__main__":
    main()
