"""How soon a watch tells that a run fails, how often it cries wolf on a healthy one, and what two live monitors say on the same rows.

    python benchmarks/live.py CASES.json [--healthy 'long/*/metrics.jsonl'] [--peers-python /path/to/python] [--chunk 5]

CASES.json is that of the score: labelled runs. A run is shown to klinic's monitor ``--chunk`` logged points at a time. Sick: only
"failing" is an accepted answer; caught: an alert of act or stop at or after the labelled onset (the injection of a lab run, else
the earliest accepted step); delays count from the middle of what is accepted. Clean: "failing" is not accepted; every alert on it is a
false alarm. Peers: an interpreter with rldoctor==0.2.0 and rlwatch==0.5.1, which get the same rows under their own names; their
critical and warning alerts count.
"""

from __future__ import annotations

import argparse
import dataclasses
import glob
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from klinic.errors import KlinicError
from klinic.facts import Facts
from klinic.read import read
from klinic.run import Run
from klinic.watch.monitor import Monitor

# Role -> rl-doctor's name, rlwatch's argument.
NAMES = {
    "reward": ("reward", "reward_mean"),
    "reward_std": ("reward_std", "reward_std"),
    "acc": ("eval/accuracy", None),
    "entropy": ("entropy", "entropy"),
    "kl": ("kl", "kl_divergence"),
    "adv_std": ("advantage/std", "advantage_std"),
    "zero_std": ("frac_reward_zero_std", None),
    "clip_frac": ("clip_ratio/region_mean", "clip_fraction"),
    "len": ("completions/mean_length", None),
    "trunc": ("completions/clipped_ratio", None),
    "grad_norm": ("grad_norm", "grad_norm"),
    "loss": ("loss", "loss"),
    "lr": ("learning_rate", "learning_rate"),
}
PEERS = """
import json, logging, sys, tempfile
logging.disable(logging.CRITICAL)
from rl_doctor.live import LiveMonitor
from rlwatch.config import RLWatchConfig
from rlwatch.core import RLWatch
out = []
for rows in json.load(open(sys.argv[1])):
    doctor = LiveMonitor(on_finding=lambda f: None)
    config = RLWatchConfig(); config.storage.log_dir = tempfile.mkdtemp()
    watch = RLWatch(config)
    a, b = [], []
    for step, doctors, watchs in rows:
        a += [[step, f.detector] for f in doctor.log(doctors, step=step)]
        b += [[step, f.detector] for f in watch.log_step(step, **watchs)]
    out.append([a, b])
json.dump(out, open(sys.argv[2], "w"))
"""


def until(run: Run, step: int) -> Run:
    """The run as it was when ``step`` had been logged."""
    curves = {}
    for name, curve in run.curves.items():
        n = int(np.searchsorted(curve.steps, step, side="right"))
        if n:
            curves[name] = dataclasses.replace(
                curve, steps=curve.steps[:n], values=curve.values[:n]
            )
    events = tuple(event for event in run.events if event.step is None or event.step <= step)
    logged = max((len(c.steps) for c in curves.values()), default=0)
    return dataclasses.replace(run, curves=curves, events=events, last=step, logged=logged)


def replay(path: str, chunk: int) -> dict[str, Any] | None:
    """Alerts of one run, and its rows under the peers' names; None for what is no run of numbers."""
    try:
        run = read(path)
    except KlinicError:
        return None
    steps = sorted({int(step) for curve in run.curves.values() for step in curve.steps})
    if len(steps) < 2:
        return None
    monitor, alerts = Monitor(alert_on="caution"), []
    for step in dict.fromkeys([*steps[chunk - 1 :: chunk], steps[-1]]):
        for change in monitor.look(until(run, step), settled=step == steps[-1]):
            if change.kind == "firing":
                alerts.append((step, change.failure, change.severity))
    facts = Facts(run)
    shapes = {role: s for role in NAMES if (s := facts.shape(role)) is not None}
    at: dict[int, dict[str, float]] = {}
    for role, shape in shapes.items():
        for step, value in zip(shape.steps.tolist(), shape.values.tolist(), strict=True):
            at.setdefault(step, {})[role] = value
    rows = [
        (
            step,
            {NAMES[role][0]: value for role, value in at[step].items()},
            {name: value for role, value in at[step].items() if (name := NAMES[role][1])},
        )
        for step in sorted(at)
    ]
    return {"alerts": alerts, "rows": rows, "first": steps[0], "last": steps[-1], "n": len(steps)}


def peers(python: str, runs: Sequence[dict[str, Any]]) -> list[list[list[tuple[int, str]]]]:
    """[rl-doctor's alerts, rlwatch's] of each run."""
    with tempfile.TemporaryDirectory() as folder:
        rows, out = Path(folder) / "rows.json", Path(folder) / "out.json"
        rows.write_text(json.dumps([run["rows"] for run in runs]))
        subprocess.run(
            [python, "-c", PEERS, str(rows), str(out)],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        found: list[list[list[tuple[int, str]]]] = json.loads(out.read_text())
        return found


def onset_of(case: dict[str, Any], path: Path, run: dict[str, Any]) -> tuple[int, int]:
    """(earliest labelled step from which the failure may show, the step delays are counted from: the middle of what is accepted)."""
    label = path.parent / "label.json"
    if label.exists() and (injected := json.loads(label.read_text()).get("inject_step")):
        return int(injected), int(injected)
    low, high = case.get("onset_fraction") or (0, 0)
    whole = run["last"] - run["first"]
    return int(run["first"] + low * whole), int(run["first"] + (low + high) / 2 * whole)


def report(name: str, sick: list[Any], clean: list[Any]) -> None:
    """sick: (alerts, onset, accepted names, run). clean: (alerts, run)."""
    delays, named, early = [], 0, 0
    for alerts, (onset, middle), accepted, run in sick:
        after = [alert for alert in alerts if alert[0] >= onset]
        early += any(alert[0] < onset for alert in alerts)
        if after:
            delays.append(max(0, after[0][0] - middle) / max(1, run["last"] - run["first"]))
            named += any(alert[1] in accepted for alert in after)
    false = sum(len(alerts) for alerts, _ in clean)
    alarmed = sum(bool(alerts) for alerts, _ in clean)
    steps = sum(run["n"] for _, run in clean)
    print(
        f"{name}: caught {len(delays)} of {len(sick)}, by an accepted name {named}, told before the onset {early}; "
        f"delay median {statistics.median(delays or [1]):.0%} of the run, nine in ten within {np.quantile(delays or [1], 0.9):.0%}; "
        f"{false} false alarms on {alarmed} of {len(clean)} clean runs, {steps} steps"
    )


def main() -> None:
    """Replay everything and print the figures by kind of run."""
    cli = argparse.ArgumentParser()
    cli.add_argument("cases", type=Path)
    cli.add_argument("--healthy", default="")
    cli.add_argument("--peers-python")
    cli.add_argument("--chunk", type=int, default=5)
    cli.add_argument("-v", action="store_true")
    args = cli.parse_args()
    root = args.cases.resolve().parent.parent
    cases = [case for case in json.loads(args.cases.read_text()) if case["kind"] != "issue"]
    cases += [
        {"kind": "healthy, long", "path": path, "status": ["healthy"], "any_of": []}
        for path in sorted(glob.glob(args.healthy))
    ]
    paths = [root / case["path"] for case in cases]
    with ProcessPoolExecutor(2) as pool:
        runs = list(pool.map(replay, map(str, paths), [args.chunk] * len(paths)))
    kept = [(c, p, r) for c, p, r in zip(cases, paths, runs, strict=True) if r is not None]
    theirs = peers(args.peers_python, [r for _, _, r in kept]) if args.peers_python else None
    for kind in dict.fromkeys(case["kind"] for case in cases):
        for who in ("klinic", "klinic, and what no failure explains", "rl-doctor", "rlwatch"):
            sick, clean = [], []
            for i, (case, path, run) in enumerate(kept):
                if case["kind"] != kind:
                    continue
                if who.startswith("klinic"):
                    plain = who == "klinic"
                    alerts = [
                        a for a in run["alerts"] if a[2] != "caution" or (not plain and ":" in a[1])
                    ]
                elif theirs is None:
                    continue
                else:
                    alerts = theirs[i][who == "rlwatch"]
                if set(case["status"]) == {"failing"}:
                    sick.append((alerts, onset_of(case, path, run), case["any_of"], run))
                    if (
                        args.v
                        and who == "klinic"
                        and not [a for a in alerts if a[0] >= sick[-1][1][0]]
                    ):
                        print("  not caught:", case["path"], case["any_of"][:3], alerts)
                elif "failing" not in case["status"]:
                    clean.append((alerts, run))
                    if args.v and who == "klinic" and alerts:
                        print("  false:", case["path"], alerts)
            if sick or clean:
                report(f"{kind}, {who}", sick, clean)


if __name__ == "__main__":
    sys.exit(main())
