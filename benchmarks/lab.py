"""Real failures with known cause: does klinic name them, date them, and do its first actions cure them?

    python benchmarks/lab.py FOLDER runs      make the runs (resumable; about half an hour on two cores)
    python benchmarks/lab.py FOLDER table     diagnose each: confusion table, false alarms, onset error
    python benchmarks/lab.py FOLDER keep OUT  a compact copy of some of the runs, for the tests

lab_claims.py and lab_rescue.py beside this file go on from these runs.

Every fault runs on two tasks and five seeds, three base models and three strengths among them; a second set has its
fault thrown at step 60, for the onset. Rules were tuned on the runs of ``TUNED``; the others are held out from that,
though their misses were read and some rules changed after it; a third task with seeds of its own was looked at once.
Whether a failure is manifest is judged by the lab (klinic/lab/manifest.py), not by the diagnosis.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from klinic.lab.faults import FAULTS

TASKS = ("max", "odd")
SEEDS = (1, 2, 3, 4, 5)
BASE = {1: 0, 2: 1, 3: 2, 4: 0, 5: 1}
STRENGTH = {1: "usual", 2: "usual", 3: "usual", 4: "mild", 5: "strong"}
LATE_SEEDS, LATE_AT = (11, 12, 13), 60
STEPS = 200
# A third task and other seeds: never tuned on, looked at once when the catalogue was completed.
FRESH_TASK, FRESH_SEEDS = "min", {21: 2, 22: 1}  # seed: base model
TUNED = {("max", 1), ("max", 2)}  # task, seed
# Present from the first step or at a step of their own: throwing them at 60 means nothing.
NOT_LATE = {
    "healthy",
    "healthy-ppo",
    "small-batch",
    "no-learning-lr",
    "no-learning-mask",
    "too-easy",
    "too-hard",
    "resume-mismatch",
}
# Names that a careful reader of the curves would accept beside the fault's own: the reward that pays for a length is
# both, a step too large ends as either, a novelty bonus is a hole in the reward, a mask off the response loses the
# gradient. The table prints the share with and without them.
ALSO = {
    "entropy-collapse": {"eval-regression"},
    "reward-hacking": {"length-explosion", "length-bias"},
    "lr-too-high": {"kl-runaway", "entropy-collapse"},
    "no-learning": {"gradient-lost"},
    "kl-runaway": {"reward-hacking", "length-explosion"},
    "eval-regression": {"entropy-collapse", "too-easy"},
}


def plan() -> Iterator[dict[str, Any]]:
    """Every run of the benchmark."""
    for fault in FAULTS:
        for task in TASKS:
            for seed in SEEDS:
                yield {
                    "fault": fault,
                    "task": task,
                    "seed": seed,
                    "base": BASE[seed],
                    "strength": STRENGTH[seed],
                    "at": None,
                }
        for seed, base in FRESH_SEEDS.items():
            yield {
                "fault": fault,
                "task": FRESH_TASK,
                "seed": seed,
                "base": base,
                "strength": "usual",
                "at": None,
            }
        for task in TASKS:
            if fault not in NOT_LATE:
                for seed in LATE_SEEDS:
                    yield {
                        "fault": fault,
                        "task": task,
                        "seed": seed,
                        "base": 0,
                        "strength": "usual",
                        "at": LATE_AT,
                    }


def name_of(run: dict[str, Any]) -> str:
    late = "-late" if run["at"] is not None else ""
    return f"{run['fault']}/{run['task']}-s{run['seed']}{late}"


def make(folder: Path, run: dict[str, Any]) -> tuple[str, float, float]:
    """One run, written beside and renamed when whole."""
    import shutil

    from klinic.lab import runs

    place = folder / name_of(run)
    if place.exists():
        return name_of(run), 0.0, 0.0
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    wall, cpu = time.perf_counter(), time.process_time()
    arguments = {k: v for k, v in run.items() if k != "fault"}
    runs.run(part, run["fault"], steps=STEPS, **arguments)
    os.replace(part, place)
    return name_of(run), time.perf_counter() - wall, time.process_time() - cpu


def make_all(folder: Path) -> None:
    workers = int(os.environ.get("WORKERS", os.cpu_count() or 1))
    walls, cpus = [], []
    with ProcessPoolExecutor(workers) as pool:
        waiting = [pool.submit(make, folder, run) for run in plan()]
        for i, done in enumerate(as_completed(waiting)):
            name, wall, cpu = done.result()
            if cpu:
                walls.append(wall)
                cpus.append(cpu)
                print(f"{i + 1}/{len(waiting)} {name} {wall:.1f} s", flush=True)
    if cpus:
        print(
            f"a run: median {statistics.median(walls):.1f} s, {statistics.median(cpus):.1f} CPU s, largest {max(cpus):.1f} CPU s"
        )


def table(folder: Path) -> None:
    """Diagnose every run and print what was said of it."""
    from klinic.diagnose import diagnose
    from klinic.lab.manifest import manifest

    said: dict[str, Counter[str]] = defaultdict(Counter)
    named: dict[str, list[bool]] = defaultdict(list)
    alarms, quiet, onset, hidden, misses = [], 0, [], Counter(), []
    took = []
    for run in plan():
        place = folder / name_of(run)
        if not place.exists():
            continue
        label = json.loads((place / "label.json").read_text())
        begin = time.process_time()
        answer = diagnose(place)
        took.append(time.process_time() - begin)
        main = answer.main
        got = main.failure if main is not None and answer.status == "failing" else answer.status
        if main is not None and answer.status == "caution":
            got = f"caution: {main.failure}"
        held_out = (run["task"], run["seed"]) not in TUNED
        want = label["failure"]
        if want is None:
            if answer.status == "failing":
                rows = [json.loads(x) for x in (place / "metrics.jsonl").read_text().splitlines()]
                forgot = manifest("eval-regression", rows)["shows"]
                alarms.append((name_of(run), got, "other tasks fell by 0.1" if forgot else ""))
            else:
                quiet += 1
            said[run["fault"]][got] += 1
            continue
        if not label["manifest"]["shows"]:
            hidden[run["fault"]] += 1
            continue
        said[run["fault"]][got] += 1
        present = {f.failure for f in answer.findings if f.status in ("present", "consequence")}
        right = main is not None and main.failure in {want} | ALSO.get(want, set())
        part = "held out" if held_out else "tuned"
        part = "fresh" if run["task"] == FRESH_TASK else part
        named[part].append(right)
        named[f"{part}, by the fault's own name alone"].append(
            main is not None and main.failure == want
        )
        if not right:
            misses.append((name_of(run), got, sorted(present)))
        if (
            run["at"] is not None
            and main is not None
            and main.failure == want
            and main.onset is not None
        ):
            onset.append(
                (
                    abs(main.onset.step - label["manifest"]["step"]),
                    main.onset.step - LATE_AT,
                    name_of(run),
                )
            )
    for fault, counts in said.items():
        extra = f"   (not manifest: {hidden[fault]})" if hidden[fault] else ""
        print(f"{fault:32} {', '.join(f'{what} {n}' for what, n in counts.most_common())}{extra}")
    for fault in hidden:
        if fault not in said:
            print(f"{fault:32} never manifest ({hidden[fault]} runs)")
    for part, results in named.items():
        print(
            f"named right, {part}: {sum(results)}/{len(results)} = {sum(results) / len(results):.0%}"
        )
    print(f"healthy left quiet: {quiet}/{quiet + len(alarms)}; false alarms: {alarms}")
    if onset:
        from_throw = sorted(abs(late) for _, late, _ in onset)
        from_manifest = sorted(error for error, _, _ in onset)
        print(
            f"onset of {len(onset)} runs thrown at step {LATE_AT}: median error {statistics.median(from_throw):g} steps "
            f"from the throw ({statistics.median(from_throw) / STEPS:.1%} of the run), "
            f"{statistics.median(from_manifest):g} from where the lab calls it manifest; "
            f"largest {from_throw[-1]}"
        )
    print(f"diagnosis: median {statistics.median(took):.2f} CPU s")
    if "-v" in sys.argv:
        for miss in misses:
            print("  missed", *miss)


KEPT = [("odd", 2)]  # task, seed: a task and a base model that no rule was tuned on; 4 MB
KEPT_KEYS = {
    *("step", "reward", "acc", "entropy", "kl", "kl_k1", "adv_std", "clip_frac", "ratio_mean"),
    *("ratio_geo", "ratio_outside", "ratio_trainer", "len", "len_wrong", "trunc", "grad_norm"),
    *("loss", "lr", "frac_zero_std", "frac_all_right", "frac_all_wrong", "eos_rate", "uniq"),
    *("mismatch_abs", "lag", "policy_version", "value_loss", "explained_var", "verifier_err"),
    *("eval_acc", "eval_other", "eval_max", "eval_min", "eval_odd", "eval_sum"),
    *("reward_correct", "reward_format", "reward_length", "reward_judge", "reward_echo"),
    "reward_surprise",
}


def keep(folder: Path, out: Path) -> None:
    """Copy the label, the settings and the curves that a diagnosis looks at, to four digits."""
    for run in plan():
        if (run["task"], run["seed"]) not in KEPT:
            continue
        source, place = folder / name_of(run), out / name_of(run).replace("/", "-")
        place.mkdir(parents=True, exist_ok=True)
        rows = [json.loads(line) for line in (source / "metrics.jsonl").read_text().splitlines()]
        with open(place / "metrics.jsonl", "w") as stream:
            for row in rows:
                short = {
                    k: float(f"{row[k]:.4g}") if isinstance(row[k], float) else row[k]
                    for k in row
                    if k in KEPT_KEYS and row[k] is not None
                }
                stream.write(json.dumps(short, separators=(",", ":")) + "\n")
        for name in ("label.json", "run_config.json"):
            (place / name).write_text((source / name).read_text())


if __name__ == "__main__":
    place, stage = Path(sys.argv[1]), sys.argv[2]
    if stage == "keep":
        keep(place, Path(sys.argv[3]))
    else:
        {"runs": make_all, "table": table}[stage](place)
