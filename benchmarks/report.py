"""The report's figures: CPU seconds to write one of 200 steps, its size at 2,000, and the first paint of 8 x 100,000 points.

python benchmarks/report.py
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from chromium import FLAGS, where

VITALS = ("reward", "acc", "entropy", "kl", "adv_std", "clip_frac", "ratio_mean", "len")
PAINTED = "() => document.querySelectorAll('.panel canvas').length >= 8"


def log(place: Path, steps: int) -> Path:
    rows = np.random.default_rng(0).random((steps, 8)).tolist()
    with open(place, "w") as stream:
        for step, row in enumerate(rows):
            stream.write(json.dumps({"step": step, **dict(zip(VITALS, row, strict=True))}) + "\n")
    return place


def cpu(*args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, "-m", "klinic", *args], env=environment, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        short = log(place / "short.jsonl", 200)
        out = place / "out.html"
        times = [cpu("diagnose", str(short), "-o", str(out)) for _ in range(7)][1:]
        text = [cpu("diagnose", str(short)) for _ in range(7)][1:]
        print(
            f"200 steps: report {statistics.median(times):.2f} CPU s, text {statistics.median(text):.2f} CPU s"
        )
        cpu("diagnose", str(log(place / "l.jsonl", 2000)), "-o", str(out))
        print(f"8 x 2,000 steps: {out.stat().st_size:,} bytes")
        cpu("diagnose", str(log(place / "l.jsonl", 100_000)), "-o", str(out))
        print(f"8 x 100,000 steps: {out.stat().st_size:,} bytes")
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=where(), args=FLAGS)
            painted, zoomed = [], []
            for _ in range(5):
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                begun = time.perf_counter()
                page.goto(out.as_uri(), wait_until="commit")
                page.wait_for_function(PAINTED)
                page.evaluate("() => new Promise(requestAnimationFrame)")
                painted.append(time.perf_counter() - begun)
                zoomed.append(
                    page.evaluate(
                        "async () => { const t = performance.now(); klinicReport.choose({zoom: [1000, 90000]});"
                        " await new Promise(requestAnimationFrame); return performance.now() - t; }"
                    )
                )
                page.close()
            browser.close()
        print(
            f"first paint of 8 x 100,000 points: median {statistics.median(painted):.2f} s, largest {max(painted):.2f} s"
        )
        print(f"a zoom of all of them: median {statistics.median(zoomed):.0f} ms")


if __name__ == "__main__":
    main()
