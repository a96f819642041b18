"""The hidden run of the last exercise: trained by the lab, read as a log, and shown only as far as was asked."""

from __future__ import annotations

import json
import os
import random
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from klinic.course.desk import Desk
from klinic.course.scenes import Log, specs
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage
from klinic.vitals import VITALS

STAGES = ("plot", "answer", "onset", "back", "change", "smoke", "judge")
STEPS = 160
EVERY = 20  # steps between checkpoints
ATS = (42, 62)  # just behind a checkpoint, so that 20 steps from there meet the fault
SLOWEST = 100  # steps a fault may take to become manifest; a slower one leaves too little to read
TRIES = 6  # runs trained at most before giving up
KEYS = [
    *VITALS,
    "trunc",
    "grad_norm",
    "frac_zero_std",
    "uniq",
    "mismatch_abs",
    "ratio_geo",
    "ratio_outside",
    "eval_acc",
]


def folder(desk: Desk) -> Path | None:
    """Where the hidden run lies, None before there is one."""
    name = desk.progress.lab.get("folder")
    place = desk.place.parent / "course" / str(name)
    return place if name and (place / "label.json").exists() else None


def label(desk: Desk) -> dict[str, Any]:
    """What was injected and when, and when it became manifest."""
    place = folder(desk)
    assert place is not None
    return dict(json.loads((place / "label.json").read_text(encoding="utf-8")))


def hidden(desk: Desk) -> dict[str, Any]:
    """The exercise's own words on the hidden fault: answer, also, tells, cures."""
    name = label(desk)["fault"]
    return next(dict(spec) for spec in specs()["lab"] if spec["fault"] == name)


def lab_log(desk: Desk) -> Log | None:
    """The hidden run as a log of the course."""
    place = folder(desk)
    if place is None:
        return None
    told = [json.loads(line) for line in (place / "metrics.jsonl").read_text().splitlines()]
    keys = tuple(key for key in KEYS if any(row.get(key) is not None for row in told))
    rows = tuple(
        {key: row[key] for key in ("step", *keys) if row.get(key) is not None} for row in told
    )
    written = [json.loads(line) for line in (place / "rollouts.jsonl").read_text().splitlines()]
    last = [s for s in written if s["step"] == written[-1]["step"]][:4]
    spec = hidden(desk)
    return Log(
        "run",
        keys,
        rows,
        spec["answer"],
        tuple(spec.get("also", ())),
        tuple(spec["tells"]),
        samples=tuple(f"{s['prompt']} {s['completion']}" for s in last),
        drawn=False,
        source=str(place),
    )


@lru_cache(maxsize=4)
def _diagnosis(place: str) -> Diagnosis:
    from klinic.diagnose import diagnose

    # The log by name: the smoke runs made later lie in the same folder.
    return diagnose(Path(place) / "metrics.jsonl")


def full_diagnosis(desk: Desk) -> Diagnosis:
    """klinic's diagnosis of the hidden run."""
    return _diagnosis(str(folder(desk)))


def lab_diagnosis(desk: Desk) -> Diagnosis:
    """klinic's diagnosis of the hidden run without what this and the coming steps still ask."""
    answer, now = full_diagnosis(desk), stage(desk)
    if reached(now, "smoke"):
        return answer
    # Notes name steps and remedies, too.
    answer = replace(answer, first_action=None, then=(), smoke=None, notes=())
    if not reached(now, "change"):
        answer = replace(answer, roll_back_to=None)
    return answer if reached(now, "back") else _undated(answer)


def _undated(answer: Diagnosis) -> Diagnosis:
    found = tuple(
        replace(f, onset=None, evidence=tuple(replace(e, onset=None) for e in f.evidence))
        for f in answer.findings
    )
    return replace(answer, findings=found)


def stage(desk: Desk) -> str:
    """What the learner has to do next; "done" at the end."""
    return str(desk.progress.lab.get("stage", STAGES[0]))


def reached(now: str, wanted: str) -> bool:
    """Whether the exercise has come to the step ``wanted``."""
    return now == "done" or STAGES.index(now) >= STAGES.index(wanted)


def answered_lab(desk: Desk) -> bool:
    """Whether the failure was named."""
    return stage(desk) not in ("plot", "answer") or bool(
        desk.progress.tries.get(desk.progress.key())
    )


def plotted(desk: Desk) -> None:
    """The first step is done: the learner has looked."""
    if stage(desk) == "plot":
        desk.progress.lab["stage"] = "answer"


def train(desk: Desk) -> None:
    """Train until a hidden fault is manifest and readable; the folder gets its name only when it is whole."""
    lab = desk.progress.lab
    rng = random.Random(lab.get("draw"))
    choices = [spec for spec in specs()["lab"] if spec["fault"] != lab.get("last")]
    for attempt in range(TRIES):
        spec = rng.choice(choices)
        # Those known to be readable first; the last tries are free, should this machine's numbers differ.
        known = attempt < TRIES - 2
        seed, at = rng.choice(spec["runs"]) if known else (rng.randrange(10_000), rng.choice(ATS))
        if (place := _trained(desk, spec, seed, at)) is not None:
            desk.progress.lab = {"folder": place.name, "fault": spec["fault"], "stage": "plot"}
            return
    raise BadUsage(desk.say("lab.unlucky"), "lab", desk.call("lab new"))


def _trained(desk: Desk, spec: dict[str, Any], seed: int, at: int) -> Path | None:
    """One run; None (and nothing left) where the failure does not show, or another one shows before it."""
    from klinic.course.wait import waiting
    from klinic.lab.runs import run

    home = desk.place.parent / "course"
    temporary, place = home / f".lab-{seed}.part", home / f"lab-{seed}"
    for old in (temporary, place):
        shutil.rmtree(old, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    with waiting(desk.say("lab.training"), STEPS) as told:
        run(
            temporary,
            spec["fault"],
            task=spec.get("task", "max"),
            seed=seed,
            steps=STEPS,
            at=at,
            strength=spec.get("strength", "usual"),
            changes=spec.get("changes", {}),
            checkpoint_every=EVERY,
            progress=told,
        )
    found = json.loads((temporary / "label.json").read_text(encoding="utf-8"))["manifest"]
    if found["shows"] and found["step"] - at <= SLOWEST:
        os.replace(temporary, place)
        _diagnosis.cache_clear()
        main = _diagnosis(str(place)).main
        if main is not None and main.failure == spec["answer"]:
            return place
    for folder_ in (temporary, place):
        shutil.rmtree(folder_, ignore_errors=True)
    return None
