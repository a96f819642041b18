"""The web app with 1,000 runs: milliseconds a request, memory of all its processes, from a line written to its step in a browser.

    python benchmarks/serve.py [--runs 1000] [--steps 200]

The logs are made here, 12 metrics each, one in four with a failure. ``klinic serve`` is a process of its own, asked over loopback.
The browser is Debian's Chromium, driven by playwright; without it the last figure is left out.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chromium import FLAGS, where


def row(step: int, sick: bool, rng: random.Random) -> str:
    late = max(0.0, min(1.0, (step - 80) / 60)) if sick else 0.0
    values = {
        "reward": 0.4 + 0.001 * min(step, 120) + rng.gauss(0, 0.01),
        "acc": 0.3 + 0.001 * min(step, 120) + rng.gauss(0, 0.01),
        "entropy": 1.6 * (1 - 0.97 * late) * (1 + rng.gauss(0, 0.02)),
        "kl": 0.01 + 0.0002 * step + abs(rng.gauss(0, 0.001)),
        "adv_std": 1.0 - 0.9 * late + rng.gauss(0, 0.01),
        "clip_frac": 0.02 + abs(rng.gauss(0, 0.002)),
        "ratio_mean": 1.0 + rng.gauss(0, 0.001),
        "len": 200 + rng.gauss(0, 3),
        "grad_norm": 0.5 + rng.gauss(0, 0.03),
        "lr": 1e-6,
        "loss": rng.gauss(0, 0.02),
        "trunc": 0.01,
    }
    return json.dumps({"step": step, **{name: round(v, 6) for name, v in values.items()}}) + "\n"


class Served:
    """``klinic serve`` as a process."""

    def __init__(self, folder: Path, state: Path) -> None:
        words = [
            sys.executable,
            "-m",
            "klinic",
            "serve",
            folder,
            "--port",
            "0",
            "--state",
            state,
            "--lang",
            "en",
        ]
        self.process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rstrip("/").rpartition(":")[2])

    def ask(self, path: str) -> tuple[float, str]:
        """Milliseconds, and what came."""
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        text = connection.getresponse().read().decode()
        connection.close()
        return 1000 * (time.perf_counter() - began), text

    def known(self) -> tuple[int, int]:
        """Runs that are listed, and those that wait to be read."""
        text = self.ask("/")[1]
        counts = sum(map(int, re.findall(r"<b>(\d+)</b>", text)))
        waiting = re.search(r"(\d+) still to be read", text)
        return counts, int(waiting[1]) if waiting else 0

    def memory(self) -> float:
        """MB of the server and its processes, what they share counted for each."""
        total = 0
        for pid in self.family():
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Rss:"):
                    total += int(line.split()[1])
        return total / 1024

    def family(self) -> list[int]:
        """The server and all below it."""
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, task.read_text().split())
        return found

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def requests(served: Served, path: str, count: int = 60) -> str:
    times = sorted(served.ask(path)[0] for _ in range(count))
    return f"median {statistics.median(times):.0f} ms, slowest of {count} {times[-1]:.0f} ms"


def seen(served: Served, folder: Path, steps: int, rng: random.Random) -> list[float]:
    """Seconds from a line written to its step in the open page of the run; five lines each of four runs that had ended."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where(), args=FLAGS)
        page = browser.new_page()
        for name in ("run-0001", "run-0002", "run-0005", "run-0006"):
            run = re.findall(r"/run/(\w+)", served.ask(f"/?q={name}")[1])[0]
            page.goto(f"{served.url}run/{run}")
            page.wait_for_selector(f"#report[data-last='{steps}']")
            for step in range(steps + 1, steps + 6):
                with open(folder / name / "train.jsonl", "a") as stream:
                    stream.write(row(step, False, rng))
                began = time.perf_counter()
                page.wait_for_selector(f"#report[data-last='{step}']", timeout=30_000)
                found.append(time.perf_counter() - began)
                time.sleep(rng.uniform(0.2, 1.2))
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as top:
        folder, state = Path(top, "runs"), Path(top, "s.sqlite")
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = top
        for i in range(given.runs):
            place = folder / f"run-{i:04d}"
            place.mkdir(parents=True)
            text = "".join(row(step, i % 4 == 0, rng) for step in range(1, given.steps + 1))
            (place / "train.jsonl").write_text(text)
        began = time.perf_counter()
        served = Served(folder, state)
        print(f"the first answer after {time.perf_counter() - began:.1f} s")
        time.sleep(2)
        print("the list while the runs are being read:", requests(served, "/"))
        peak = 0.0
        while (found := served.known())[0] < given.runs or found[1]:
            peak = max(peak, served.memory())
            time.sleep(1)
        took = time.perf_counter() - began
        print(f"{given.runs} runs of {given.steps} steps read and judged in {took:.0f} s")
        print("the list:", requests(served, "/"))
        print("its rows alone, as they are asked for live:", requests(served, "/?part=rows"))
        print("filtered:", requests(served, "/?status=failing&q=run-04&sort=newest"))
        run = re.findall(r"/run/(\w+)", served.ask("/?q=run-0001")[1])[0]
        print("a run's page:", requests(served, f"/run/{run}"))
        print("its report's data:", requests(served, f"/run/{run}/data"))
        print("the alerts:", requests(served, "/alerts", 20))
        print(f"memory: {max(peak, served.memory()):.0f} MB at most, {served.memory():.0f} MB now")
        if where():
            times = seen(served, folder, given.steps, rng)
            print(
                f"from a line written to its step in the browser, {len(times)} lines: "
                f"median {statistics.median(times):.2f} s, slowest {max(times):.2f} s"
            )
            print(f"memory: {served.memory():.0f} MB")
        served.stop()
        began = time.perf_counter()
        served = Served(folder, state)
        while served.known()[0] < given.runs:
            time.sleep(0.05)
        print(f"started again, all are listed after {time.perf_counter() - began:.1f} s")
        print("the list:", requests(served, "/"))
        print(f"memory: {served.memory():.0f} MB")
        served.stop()


if __name__ == "__main__":
    main()
