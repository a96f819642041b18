"""What `klinic watch` costs with many growing runs, and whether any alert is lost or doubled when it is killed at random.

    python benchmarks/watch.py load [--runs 100] [--seconds 120] [--steps 300]
    python benchmarks/watch.py kills [--kills 50] [--runs 4]

load: each run has ``--steps`` steps of 12 metrics at the start and grows by a line a second; CPU share and peak memory of the whole
process. kills: failing runs grow while the watch is killed with SIGKILL at random moments and started again; a webhook counts what
arrives.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from speed import rows

import klinic

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse" / "trainer_state.json"


def load(runs: int, seconds: int, steps: int) -> None:
    """Print the share of one core and the peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps(row) + "\n" for row in rows(steps + 10 * seconds)]
        places = [Path(folder) / f"run-{n}" / "metrics.jsonl" for n in range(runs)]
        for place in places:
            place.parent.mkdir()
            place.write_text("".join(lines[:steps]))
        command = [sys.executable, "-m", "klinic", "watch", folder, "--state", f"{folder}/.s"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        began, grown = time.monotonic(), steps
        while time.monotonic() - began < seconds:
            for place in places:
                with place.open("a") as out:
                    out.write(lines[grown])
            grown += 1
            time.sleep(max(0.0, began + grown - steps - time.monotonic()))
        lasted = time.monotonic() - began
        process.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        cpu = usage.ru_utime + usage.ru_stime
        with sqlite3.connect(f"{folder}/.s") as db:
            behind = [grown - step for (step,) in db.execute("SELECT step FROM runs")]
        print(
            f"{runs} runs, {steps} to {grown} steps: {cpu / lasted:.0%} of one core over {lasted:.0f} s, "
            f"{usage.ru_maxrss / 1024:.0f} MB; {len(behind)} runs diagnosed, the last diagnosis at most {max(behind)} steps ago"
        )


def kills(count: int, runs: int) -> None:
    """Print how many alerts there were, and how many arrived not at all or twice."""
    history = json.loads(DEMO.read_text())["log_history"]
    got: list[str] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            got.append(self.headers["Idempotency-Key"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    rnd = random.Random(1)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Hook) as http,
        tempfile.TemporaryDirectory() as folder,
    ):
        threading.Thread(target=http.serve_forever, daemon=True).start()
        state = f"{folder}/.s"
        command = [sys.executable, "-m", "klinic", "watch", folder, "--state", state]
        command += ["--webhook", f"http://127.0.0.1:{http.server_port}/", "--interval", "0.1"]
        places: list[tuple[Path, int]] = []
        killed = 0
        while killed < count:
            if killed % 5 == 0:  # new runs, which fail again
                places = [
                    (Path(folder) / f"run-{killed}-{n}" / "metrics.jsonl", 0) for n in range(runs)
                ]
                for place, _ in places:
                    place.parent.mkdir()
            watch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + 0.4 + rnd.random() * 1.6
            while time.monotonic() < end:
                for i, (place, at) in enumerate(places):
                    with place.open("a") as out:
                        out.writelines(json.dumps(row) + "\n" for row in history[at : at + 3])
                    places[i] = place, at + 3
                time.sleep(0.1)
            os.kill(watch.pid, signal.SIGKILL)
            watch.wait()
            killed += 1
        subprocess.run([*command, "--once"], stdout=subprocess.DEVNULL, check=False)
        with sqlite3.connect(state) as db:
            wanted = {row[0] for row in db.execute("SELECT id FROM alerts")}
            fired = Counter(
                (body["path"], body["failure"], body["state"])
                for (text,) in db.execute("SELECT body FROM alerts")
                for body in [json.loads(text)]
            )
        http.shutdown()
    arrived = Counter(got)
    print(
        f"{killed} kills, {len(wanted)} alerts: {len(wanted - arrived.keys())} lost, "
        f"{sum(n > 1 for n in arrived.values())} arrived twice (same id), "
        f"{sum(n > 1 for key, n in fired.items() if key[2] == 'firing')} fired twice"
    )


def main() -> None:
    """Run what was asked for."""
    cli = argparse.ArgumentParser()
    cli.add_argument("what", choices=["load", "kills"])
    cli.add_argument("--runs", type=int)
    cli.add_argument("--seconds", type=int, default=120)
    cli.add_argument("--steps", type=int, default=300)
    cli.add_argument("--kills", type=int, default=50)
    args = cli.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if args.what == "load":
        load(args.runs or 100, args.seconds, args.steps)
    else:
        kills(args.kills, args.runs or 4)


if __name__ == "__main__":
    main()
