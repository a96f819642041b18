"""Taking in a gigabyte of rollouts: time, memory, against DuckDB's own scan of the same bytes, and what a new step costs.

python benchmarks/rollouts.py [--mb 1024]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TAKE = """
import sys, time
from pathlib import Path
from klinic.rollouts.store import Store
if __name__ == "__main__":
    begun = time.perf_counter()
    news = Store(Path(sys.argv[1]), folder=Path(sys.argv[2])).take()
    print(time.perf_counter() - begun, news.rows, len(news.steps))
"""
SCAN = """
import sys, time, duckdb
begun = time.perf_counter()
with duckdb.connect(config={"threads": 2}) as c:
    found = c.execute("SELECT step, count(*), avg(score), avg(length(output)) FROM read_ndjson(?) GROUP BY step", [sys.argv[1]]).fetchall()
print(time.perf_counter() - begun, len(found))
"""


def step_of(number: int, draw: random.Random, words: list[str], rows: int = 512) -> str:
    lines = []
    for i in range(rows):
        a, b = draw.randrange(10, 99), draw.randrange(10, 99)
        thought = " ".join(draw.choices(words, k=draw.randrange(120, 420)))
        answer = a + b if draw.random() < 0.5 else a - b
        row = {
            "input": f"Question {i // 8}: what is {a} + {b}? Think, then answer in <answer> tags.",
            "output": f"<think>{thought}</think> <answer>{answer}</answer>",
            "gts": str(a + b),
            "score": float(answer == a + b),
            "step": number,
            "acc": float(answer == a + b),
        }
        lines.append(json.dumps(row))
    return "\n".join(lines) + "\n"


def ran(code: str, *given: str) -> str:
    out = subprocess.run(
        [sys.executable, "-c", code, *given], capture_output=True, text=True, check=True
    )
    return out.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=1024)
    given = parser.parse_args()
    draw = random.Random(0)
    words = [
        "".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randrange(2, 9)))
        for _ in range(4000)
    ]
    with tempfile.TemporaryDirectory() as folder:
        place, step = Path(folder) / "run", 0
        place.mkdir()
        with open(place / "rollouts.jsonl", "w") as stream:
            while stream.tell() < given.mb * 2**20:
                stream.write(step_of(step, draw, words))
                step += 1
        size = (place / "rollouts.jsonl").stat().st_size
        print(f"{size / 2**30:.2f} GiB, {step} steps of 512")
        script = Path(folder) / "take.py"
        script.write_text(TAKE)

        def take() -> str:
            return subprocess.run(
                [sys.executable, str(script), str(place), f"{folder}/cache"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()

        floor = ran(SCAN, str(place / "rollouts.jsonl"))
        print("duckdb scan      (s, steps):", floor)
        begun = time.perf_counter()
        print(
            "take             (s, rows, steps):", take(), f"wall {time.perf_counter() - begun:.1f}"
        )
        print(
            "largest process  (MiB):",
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        )
        print("again            (s, rows, steps):", take())
        with open(place / "rollouts.jsonl", "a") as stream:
            stream.write(step_of(step, draw, words))
        print("one more step    (s, rows, steps):", take())


if __name__ == "__main__":
    main()
