"""Ten situations, three seeds, five formats: top verdict, false alarms, onset error. Usage: situations.py FOLDER

FOLDER holds NAME-SEED/{run.log,trainer_state.json,verl.jsonl,run.csv,run.jsonl} and truth.json (label and onset by name).
The data are drawn from the same table the rules are read from: a ranking of tools, not a proof.
"""

import json
import statistics
import sys
from pathlib import Path

from klinic.diagnose import diagnose

FORMATS = ("run.log", "trainer_state.json", "verl.jsonl", "run.csv", "run.jsonl")
COUNTED_FROM_ONE = {"trainer_state.json", "verl.jsonl"}
BENIGN = {"healthy", "benign_noise"}
NAMES = {"weight_sync": "weight-sync-failure"}


def score(folder: Path, form: str) -> dict[str, object]:
    """Counts of one format."""
    truth = json.loads((folder / "truth.json").read_text())
    right = wanted = false = benign = 0
    errors: list[float] = []
    wrong = []
    for name, case in truth.items():
        slug = NAMES.get(case["label"], case["label"].replace("_", "-"))
        for seed in range(3):
            answer = diagnose(folder / f"{name}-{seed}" / form)
            main = answer.main
            if case["label"] in BENIGN:
                benign += 1
                false += main is not None
            else:
                wanted += 1
                right += main is not None and main.failure == slug
                if main and main.failure == slug and main.onset and case["onset"] is not None:
                    errors.append(abs(main.onset.step - case["onset"] - (form in COUNTED_FROM_ONE)))
            if (case["label"] in BENIGN) == (main is not None) and (
                main is None or main.failure != slug
            ):
                wrong.append(f"{name}-{seed}: {main.failure if main else answer.status}")
    return {
        "right": right,
        "wanted": wanted,
        "false": false,
        "benign": benign,
        "onsets": len(errors),
        "onset_median": statistics.median(errors) if errors else None,
        "onset_max": max(errors, default=None),
        "wrong": wrong,
    }


if __name__ == "__main__":
    for form in FORMATS:
        found = score(Path(sys.argv[1]), form)
        print(form, *(f"{key}={value}" for key, value in found.items()))
