"""Make the real logs of the course's second round: lab runs, reduced to what the exercises show.

    python tools/make_course_runs.py [NAME...] [--keep DIR]

Each entry of RUNS is trained by the lab; a fault that did not become manifest is an error, so pick another seed. What
klinic says of each run is printed beside it: the course tells the learner where tool and truth differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from klinic.course.labwork import KEYS as SHOWN
from klinic.course.scenes import specs
from klinic.diagnose import diagnose
from klinic.lab.runs import run

OUT = Path(__file__).resolve().parent.parent / "src" / "klinic" / "course" / "runs"
# The eight curves under the lab's own names, and what excludes the neighbours.
# By the last two the lab's table is recognised.
KEYS = ["step", *SHOWN, "frac_all_wrong", "eos_rate"]
SAMPLES = 4
LIMIT = 25_000  # bytes a file

# Task and settings are such that the failure named is the first to show: in this small world whatever is paid by the
# token also runs from the reference, and a step too large soon breaks everything at once.
SHORT = {"beta": 0.1, "max_new_tokens": 48}
GREEDY = {"beta": 0.2, "lr": 0.004, "epochs": 12, "minibatches": 4}
RUNS: dict[str, dict[str, Any]] = {
    "collapse-a": {"fault": "entropy-collapse", "strength": "strong", "seed": 43, "at": 60},
    "collapse-b": {"fault": "entropy-collapse", "strength": "strong", "seed": 42, "at": 60},
    "collapse-s": {"fault": "entropy-collapse", "strength": "strong", "seed": 44, "at": 70},
    "sync-a": {"fault": "weight-sync-failure", "seed": 14, "at": 40},
    "sync-s": {"fault": "weight-sync-failure", "task": "odd", "seed": 15, "at": 60},
    "easy": {"fault": "too-easy", "seed": 16, "at": 0},
    "length-c": {
        "fault": "length-explosion",
        "strength": "strong",
        "task": "sum",
        "seed": 54,
        "at": 40,
        "changes": SHORT,
    },
    "length-s": {
        "fault": "length-explosion",
        "strength": "strong",
        "task": "sum",
        "seed": 56,
        "at": 60,
        "changes": SHORT,
    },
    "healthy-c": {"fault": "healthy", "task": "sum", "seed": 31},
    "healthy-s": {"fault": "healthy", "seed": 20},
    "small-batch": {"fault": "small-batch", "task": "sum", "seed": 51},
    "lr": {"fault": "lr-too-high", "seed": 52, "at": 0, "changes": GREEDY},
    "hacking": {"fault": "reward-hacking-extractor", "task": "sum", "seed": 51, "at": 40},
    "runaway": {"fault": "kl-runaway", "seed": 53, "at": 60},
}


def compact(folder: Path, recipe: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run: three figures a number, the configuration, a few samples of its last group."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    told = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]
    label = json.loads((folder / "label.json").read_text())
    keys = [key for key in KEYS if any(row.get(key) is not None for row in rows)]
    last = [sample for sample in told if sample["step"] == told[-1]["step"]][:SAMPLES]
    made = " ".join(f"--{k} {v}" for k, v in recipe.items() if k != "changes")
    made += "".join(f" --set {k}={v}" for k, v in recipe.get("changes", {}).items())
    return {
        "made_by": f"klinic lab run {made} --steps {len(rows)}",
        "injected": label["injected"],
        "inject_step": label["inject_step"],
        "manifest": label["manifest"],
        "config": json.loads((folder / "run_config.json").read_text()),
        "samples": [f"{s['prompt']} {s['completion']}" for s in last],
        "keys": keys,
        "rows": [[_short(row.get(key)) for key in keys] for row in rows],
    }


def _short(value: Any) -> Any:
    if isinstance(value, float):
        short = float(f"{value:.3g}" if abs(value) > 1.2 or abs(value) < 0.1 else f"{value:.4f}")
        return int(short) if short == int(short) and abs(short) < 1e6 else short
    return value


def main() -> int:
    """Train what was named, or all."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("names", nargs="*", choices=[*RUNS, []], default=[])
    asked.add_argument("--keep", type=Path, help="leave the whole runs in this folder")
    options = asked.parse_args()
    wrong = 0
    real = {spec["run"]: spec["answer"] for spec in specs().get("real", {}).values()}
    for name in options.names or RUNS:
        recipe = RUNS[name]
        with tempfile.TemporaryDirectory() as temporary:
            folder = (options.keep or Path(temporary)) / name
            run(folder, recipe["fault"], **{k: v for k, v in recipe.items() if k != "fault"})
            kept = compact(folder, recipe)
            answer = diagnose(folder)
        shows = kept["manifest"]["shows"]
        text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
        text = text.replace('"rows":[[', '"rows":[\n[').replace("],[", "],\n[") + "\n"
        main_finding = answer.main
        print(
            f"{name:12} {len(text.encode()):6} bytes  {recipe['fault']} at {kept['inject_step']}, "
            f"manifest {kept['manifest']['step']}; asked for {real.get(name)}; klinic: {answer.status}",
            main_finding and (main_finding.failure, main_finding.onset and main_finding.onset.step),
            [f.failure for f in answer.findings if f.status in ("benign", "consequence")],
            flush=True,
        )
        if shows is False or len(text.encode()) > LIMIT:
            wrong += 1
            print(f"  not kept: {'too large' if shows is not False else 'nothing is manifest'}")
            continue
        (OUT / f"{name}.json").write_text(text, encoding="utf-8")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
