"""Do klinic's first actions cure real failures? python benchmarks/lab_rescue.py RUNS OUT   (RUNS: made by lab.py)

``klinic rescue`` on every manifest run of three seeds: the checkpoint before the onset, one change, 20 steps beside a
control, 100 more if better, and diagnosed again. What klinic calls no failure but a caution is tried as well
(``--anyway``). Resumable, as the rescue itself is.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from klinic.lab.faults import FAULTS

SEEDS = (1, 2, 3)
NOT_TRIED = ("small-batch", "healthy", "healthy-ppo")


def rescue(run: Path, out: Path) -> dict[str, Any]:
    """One rescue's own JSON."""
    out.parent.mkdir(parents=True, exist_ok=True)
    words = ["rescue", str(run), "-o", str(out), "--format", "json", "--steps", "20", "--on", "100"]
    words.append("--anyway")
    done = subprocess.run(
        [sys.executable, "-m", "klinic", *words], capture_output=True, text=True, check=False
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"status": "error", "error": (done.stderr or done.stdout)[-300:], "attempts": []}
    return found


def main(runs: Path, out: Path) -> None:
    """Rescue every run and print the shares."""
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    wanted = [
        (fault, seed)
        for fault in FAULTS
        if fault not in NOT_TRIED
        for seed in SEEDS
        if (runs / fault / f"max-s{seed}" / "label.json").exists()
        and json.loads((runs / fault / f"max-s{seed}" / "label.json").read_text())["manifest"][
            "shows"
        ]
    ]
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with ThreadPoolExecutor(workers) as pool:
        results = pool.map(
            lambda job: (
                job,
                rescue(runs / job[0] / f"max-s{job[1]}", out / job[0] / f"max-s{job[1]}"),
            ),
            wanted,
        )
        for (fault, seed), answer in results:
            found[fault].append(answer)
            tried = [f"{a['change']}: {a['outcome']}" for a in answer.get("attempts", [])]
            print(f"{fault} s{seed}: {answer['status']}; {'; '.join(tried)}", flush=True)
    first = second = any_ = total = 0
    print(f"\n{'fault':32} runs  by the first  by another  by any")
    for fault, answers in found.items():
        by = [0, 0, 0]
        for answer in answers:
            # What is only to be looked at was not tried.
            tried = [a for a in answer.get("attempts", []) if a["how"] in ("set", "fix")]
            outcomes = [a["outcome"] for a in tried]
            by[0] += outcomes[:1] == ["rescued"]
            by[1] += "rescued" in outcomes[1:]
            by[2] += "rescued" in outcomes
        print(f"{fault:32} {len(answers):4}  {by[0]:12}  {by[1]:10}  {by[2]:6}")
        first, second, any_ = first + by[0], second + by[1], any_ + by[2]
        total += len(answers)
    print(f"{'all':32} {total:4}  {first:12}  {second:10}  {any_:6}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
