"""How often is each word of confidence right? Counted on labelled runs, each repository and each fault once.

    python benchmarks/calibration.py LAB SHARED           print the table
    python benchmarks/calibration.py LAB SHARED --write   and keep it in src/klinic/calibration.toml, which reports cite

LAB is the folder of benchmarks/lab.py, SHARED the folder of labelled logs (bench/dev.json beside runs/ and cases/).
Runs of one repository share their data, their trainer and their author, so they are no independent evidence: the share
of a word is the mean over repositories (public runs and reports) and over faults (the lab), not over runs.
A word is right where the failure it was said of is one that a careful reader accepts; of a healthy run none is.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import lab as bench

from klinic.diagnose import diagnose_all
from klinic.diagnosis import Diagnosis
from klinic.errors import KlinicError
from klinic.files import write_whole

WORDS = ("certain", "likely", "possible")
READERS = {"trl", "verl", "jsonl", "memory", "other"}
KEEP = Path(__file__).parent.parent / "src" / "klinic" / "calibration.toml"
Said = tuple[str, str, str, bool, str]  # kind, group, word, right, which run


def of_the_lab(folder: Path) -> Iterator[Said]:
    for run in bench.plan():
        place = folder / bench.name_of(run)
        if not place.exists() or (run["task"], run["seed"]) in bench.TUNED:
            continue
        label = json.loads((place / "label.json").read_text())
        want = label["failure"]
        if want is not None and not label["manifest"]["shows"]:
            continue
        main = (answer := diagnose_all(place)[0]).main
        if main is None or main.confidence is None or (want is None and answer.status != "failing"):
            continue
        right = want is not None and main.failure in {want} | bench.ALSO.get(want, set())
        yield "lab", run["fault"], main.confidence, right, f"{bench.name_of(run)}: {main.failure}"


def of_the_public(shared: Path) -> Iterator[Said]:
    for case in json.loads((shared / "bench" / "dev.json").read_text()):
        if (
            not case["strict"]
            or case["reader"] not in READERS
            or case["kind"] not in ("public-run", "issue")
        ):
            continue
        place = shared / case["path"]
        try:
            answers: list[Diagnosis] = diagnose_all(place)
        except KlinicError:
            continue
        main = answers[0].main if answers else None
        if main is None or main.confidence is None:
            continue
        if (
            answers[0].status == "caution"
            and set(case["status"]) & {"healthy", "caution"}
            and not case["any_of"]
        ):
            continue  # a caution on a run that nobody calls ill claims nothing
        right = answers[0].status in case["status"] and (
            not case["any_of"] or main.failure in case["any_of"]
        )
        yield "public", _repository(place), main.confidence, right, f"{case['id']}: {main.failure}"


def _repository(place: Path) -> str:
    for name in ("meta.json", "case.json"):
        for folder in (place, place.parent):
            if (folder / name).is_file():
                told = json.loads((folder / name).read_text())
                return str(told.get("repo") or told["source"]).partition("#")[0]
    return place.parent.name


def main() -> None:
    lab, shared = Path(sys.argv[1]), Path(sys.argv[2])
    said = [*of_the_lab(lab), *of_the_public(shared)]
    kept = []
    print(f"{'word':10} {'kind':8} {'groups':>6} {'runs':>5} {'right':>6} {'by group':>9}")
    for word in WORDS:
        for kind in ("lab", "public", "all"):
            groups: dict[str, list[bool]] = defaultdict(list)
            for k, group, w, right, _ in said:
                if w == word and kind in (k, "all"):
                    groups[f"{k} {group}"].append(right)
            if not groups:
                print(f"{word:10} {kind:8} {0:6} {0:5}")
                continue
            runs = sum(map(len, groups.values()))
            right = sum(map(sum, groups.values()))
            share = sum(sum(g) / len(g) for g in groups.values()) / len(groups)
            print(f"{word:10} {kind:8} {len(groups):6} {runs:5} {right:6} {share:9.0%}")
            if kind == "all":
                kept.append(
                    f"[{word}]\nshare = {share:.2f}\ngroups = {len(groups)}\nruns = {runs}\n"
                )
    if "-v" in sys.argv:
        for _, _, word, right, name in said:
            if not right:
                print(f"  {word}, wrong: {name}")
    if "--write" in sys.argv:
        head = "# Made by benchmarks/calibration.py: how often a word of confidence was right, each repository and fault once.\n"
        write_whole(KEEP, (head + "\n".join(kept)).encode())


if __name__ == "__main__":
    main()
