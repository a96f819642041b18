"""What a recorded step costs: 60 metrics as a mapping, the same with samples, and a whole Step.

    python benchmarks/recorder.py [--steps 2000] [--metrics 60] [--out FOLDER]

Prints the median and the 99 % quantile, in microseconds, of Recorder.log alone, of a bare json.dumps with write and flush beside it,
and the bytes a step takes. Exit code 1 where the median of 60 metrics is above a millisecond.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from klinic.instrument import Recorder, Step

LIMIT = 1e-3  # seconds a step


def timed(call: Callable[[int], object], steps: int) -> tuple[float, float]:
    """Median and 99 % quantile of the seconds a call takes."""
    times = []
    for n in range(steps):
        begun = time.perf_counter()
        call(n)
        times.append(time.perf_counter() - begun)
    return float(np.median(times)), float(np.quantile(times, 0.99))


def a_step(rng: np.random.Generator) -> Step:
    """A full step of 32 responses of up to 64 tokens."""
    mask = np.arange(64)[None] < rng.integers(8, 65, 32)[:, None]
    logp = -rng.exponential(1, (32, 64))
    step = Step()
    step.policy(
        mask, logp, old=logp - 0.01, reference=logp - 0.1, entropy=-logp, advantages=logp * 0
    )
    step.responses(mask, rewards=rng.normal(size=32), groups=8, cap=64)
    return step


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--metrics", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    values = {f"group_{i % 6}/metric_{i}": float(rng.normal()) for i in range(options.metrics)}
    rows = [
        {"prompt": "p" * 200, "completion": "c" * 800, "reward": float(r), "length": 200}
        for r in rng.normal(size=64)
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        with (
            Recorder(folder / "a") as plain,
            Recorder(folder / "b") as sampled,
            Recorder(folder / "c") as whole,
            open(folder / "bare.jsonl", "w") as bare,
        ):

            def write(n: int) -> None:
                bare.write(json.dumps({"step": n, **values}) + "\n")
                bare.flush()

            def both(n: int) -> None:
                sampled.log(n, values)
                sampled.samples(n, rows)

            step = a_step(rng)
            found = {
                "json.dumps, write, flush": timed(write, options.steps),
                f"Recorder.log, {options.metrics} metrics": timed(
                    lambda n: plain.log(n, values, seconds=1.0), options.steps
                ),
                "the same and 12 of 64 rollouts": timed(both, options.steps // 10),
                f"Recorder.log(Step), {len(step.results())} metrics": timed(
                    lambda n: whole.log(n, step), options.steps // 10
                ),
            }
        size = (folder / "a" / "metrics.jsonl").stat().st_size / options.steps
    for name, (median, high) in found.items():
        print(f"{name:34} {median * 1e6:8.0f} us median {high * 1e6:8.0f} us p99")
    print(f"{size:.0f} bytes a step")
    return int(found[f"Recorder.log, {options.metrics} metrics"][0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
