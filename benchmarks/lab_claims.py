"""Claims about cures, tried on real runs: python benchmarks/lab_claims.py RUNS OUT   (RUNS: made by lab.py; resumable)

Every arm goes on from a checkpoint of three runs for 100 steps with one thing changed; printed is the median over the
seeds of the last ten steps, and every seed's value.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

SEEDS = (1, 2, 3)
GO_ON = 100
LATE = 180  # a checkpoint well inside the failure
LOWER_LR = 1.4e-4  # a fifth of the healthy trainer's

COLLAPSE: dict[str, tuple[int, dict[str, Any], tuple[str, ...]]] = {
    "nothing changed": (LATE, {}, ()),
    "lr / 5, cause still on": (LATE, {"lr": LOWER_LR}, ()),
    "temperature 1.2, cause still on": (LATE, {"temperature": 1.2}, ()),
    "cause removed": (LATE, {"entropy_coef": 0.0}, ()),
    "cause removed, lr / 5": (LATE, {"entropy_coef": 0.0, "lr": LOWER_LR}, ()),
    "cause removed, KL 0.05 to the base": (LATE, {"entropy_coef": 0.0, "beta": 0.05}, ()),
    "back to step 20, cause removed": (20, {"entropy_coef": 0.0}, ()),
    "back to step 20, lr / 5, cause on": (20, {"lr": LOWER_LR}, ()),
}
HACK: dict[str, tuple[int, dict[str, Any], tuple[str, ...]]] = {
    "nothing changed": (LATE, {}, ()),
    "lr / 5, hole open": (LATE, {"lr": LOWER_LR}, ()),
    "KL 0.05, hole open": (LATE, {"beta": 0.05}, ()),
    "KL 0.2, hole open": (LATE, {"beta": 0.2}, ()),
    "reward fixed, no rollback": (LATE, {}, ("reward",)),
    "back to step 20, lr / 5, hole open": (20, {"lr": LOWER_LR}, ()),
    "back to step 20, reward fixed": (20, {}, ("reward",)),
}
QUESTIONS = {
    "entropy-collapse": (COLLAPSE, "entropy"),
    "reward-hacking-list": (HACK, "acc"),
    "reward-hacking-extractor": (HACK, "acc"),
    "reward-hacking-judge": (HACK, "acc"),
}


def arm(runs: Path, out: Path, fault: str, seed: int, what: str) -> tuple[str, str, int, float]:
    """The mean of the watched metric over the last ten steps of one arm."""
    from klinic.lab.runs import resume

    arms, metric = QUESTIONS[fault]
    start, changes, fix = arms[what]
    place = out / fault / f"{what.replace(' ', '_').replace('/', 'by')}-s{seed}"
    if not place.exists():
        part = place.with_name(f".{place.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        source = runs / fault / f"max-s{seed}" / f"checkpoint-{start}"
        resume(source, part, steps=GO_ON, changes=changes, fix=fix, checkpoint_every=0)
        os.replace(part, place)
    return fault, what, seed, _end(place, metric)


def _end(place: Path, metric: str) -> float:
    rows = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]
    return statistics.mean(row[metric] for row in rows[-10:])


def normalisation(out: Path, how: str, seed: int) -> tuple[str, int, dict[str, float]]:
    """Length of right and wrong answers under one loss aggregation, on sums, without KL."""
    from klinic.lab.runs import run

    place = out / "aggregation" / f"{how}-s{seed}"
    if not place.exists():
        part = place.with_name(f".{place.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        changes = {"loss_aggregation": how, "beta": 0.0, "lr": 2e-3, "other_tasks": 0.0}
        run(part, task="sum", seed=seed, steps=300, changes=changes, checkpoint_every=0)
        os.replace(part, place)
    rows = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]

    def level(name: str, part: list[dict[str, Any]]) -> float:
        return statistics.mean(row[name] for row in part if row[name] is not None)

    return (
        how,
        seed,
        {
            f"{name} {when}": level(name, part)
            for name in ("len", "len_right", "len_wrong", "acc")
            for when, part in (("first 30", rows[:30]), ("last 30", rows[-30:]))
        },
    )


def main(runs: Path, out: Path) -> None:
    """Run every arm and print the tables."""
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    with ProcessPoolExecutor(workers) as pool:
        waiting = [
            pool.submit(arm, runs, out, fault, seed, what)
            for fault, (arms, _) in QUESTIONS.items()
            for what in arms
            for seed in SEEDS
        ]
        lengths = [
            pool.submit(normalisation, out, how, seed)
            for how in ("token", "sequence", "constant")
            for seed in (1, 2, 3, 4, 5)
        ]
        found: dict[tuple[str, str], list[float]] = {}
        for done in waiting:
            fault, what, _, value = done.result()
            found.setdefault((fault, what), []).append(value)
        for fault, (arms, metric) in QUESTIONS.items():
            print(f"\n{fault}: {metric} after {GO_ON} more steps")
            for what in arms:
                values = found[fault, what]
                each = " ".join(f"{v:.2f}" for v in values)
                print(f"  {what:38} {statistics.median(values):.2f}   ({each})")
        print("\nloss aggregation on sums, no KL, 300 steps: median of five seeds")
        rows = [done.result() for done in lengths]
        for how in ("token", "sequence", "constant"):
            ours = [values for h, _, values in rows if h == how]
            medians = {k: statistics.median(v[k] for v in ours) for k in ours[0]}
            print(
                f"  {how:9}"
                + "  ".join(
                    f"{name} {medians[f'{name} first 30']:.2f} -> {medians[f'{name} last 30']:.2f}"
                    for name in ("len", "len_right", "len_wrong", "acc")
                )
            )
            each = " ".join(f"{v['len last 30'] / v['len first 30']:.2f}" for v in ours)
            print(f"            growth of len by seed: {each}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
