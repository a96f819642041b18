"""The last exercise: a real run with a hidden fault, made by the lab; every step of the procedure is checked."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from klinic.course import labcheck
from klinic.course.answers import slugs
from klinic.course.desk import Desk
from klinic.course.scenes import Log, specs
from klinic.course.words import flowed, hints
from klinic.diagnosis import Diagnosis
from klinic.errors import BadUsage

STAGES = ("plot", "answer", "onset", "back", "change", "smoke", "judge")
STEPS = 160
EVERY = 20  # steps between checkpoints
ATS = (42, 62)  # just behind a checkpoint, so that 20 steps from there meet the fault
SLOWEST = 100  # steps a fault may take to become manifest; a slower one leaves too little to read
TRIES = 6  # runs trained at most before giving up
LONGEST = 60  # steps of a smoke run on request
KEYS = [
    "reward",
    "acc",
    "entropy",
    "kl",
    "adv_std",
    "clip_frac",
    "ratio_mean",
    "len",
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


def lab_diagnosis(desk: Desk) -> Diagnosis:
    """klinic's diagnosis of the hidden run."""
    return _diagnosis(str(folder(desk)))


def stage(desk: Desk) -> str:
    """What the learner has to do next; "done" at the end."""
    return str(desk.progress.lab.get("stage", STAGES[0]))


def answered_lab(desk: Desk) -> bool:
    """Whether the failure was named."""
    return stage(desk) not in ("plot", "answer") or bool(
        desk.progress.tries.get(desk.progress.key())
    )


def plotted(desk: Desk) -> None:
    """The first step is done: the learner has looked."""
    if stage(desk) == "plot":
        desk.progress.lab["stage"] = "answer"


def show(desk: Desk) -> str:
    """The state of the exercise; trains the hidden run where there is none."""
    if folder(desk) is None:
        _train(desk)
    place = folder(desk)
    now = stage(desk)
    lines = [flowed(desk.say("lab.intro", steps=STEPS, place=place)), ""]
    for one in STAGES:
        at, reached = STAGES.index(one), now == "done" or STAGES.index(one) < STAGES.index(now)
        lines.append(f"  [{'x' if reached else ' '}] {at + 1} {desk.say(f'lab.step.{one}')}")
    return "\n".join(lines) + "\n\n" + advice(desk)


def advice(desk: Desk) -> str:
    """What to type next."""
    if folder(desk) is None:
        return desk.type("lab")
    typed = {
        "plot": ("plot",),
        "answer": ("hint", "answer ..."),
        "onset": ("cat run 40 60", "onset 50"),
        "back": ("back 20",),
        "change": ("change temperature=1.1", "change fix reward"),
        "smoke": ("smoke 40", "change ...") if desk.progress.lab.get("steps") else ("smoke",),
        "judge": ("judge better", "judge worse", "judge inconclusive"),
        "done": ("diagnose", "change ...", "lab new", "next"),
    }
    now = stage(desk)
    ask = desk.say(f"lab.ask.{now}")
    return flowed(ask) + "\n" + desk.type(*typed[now])


def hint(desk: Desk) -> str:
    """A graded hint on the current step."""
    now = stage(desk)
    if folder(desk) is None or now == "done":
        return desk.say("hint.none") + "\n" + advice(desk)
    known = hints(f"lab.help.{now}.hints", desk.lang)
    if now == "answer":  # the last one names the curves of this very run
        tells = ", ".join(hidden(desk)["tells"])
        known = [*known, desk.say("lab.tells", curves=tells)]
    count = desk.progress.hints
    key = f"{desk.progress.key()}/{now}"
    n = count[key] = min(count.get(key, 0) + 1, len(known))
    return (
        f"{desk.say('hint.grade', n=n, all=len(known))}\n{flowed(known[n - 1])}\n\n{advice(desk)}"
    )


def renew(desk: Desk) -> str:
    """Another hidden fault."""
    old = folder(desk)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    progress = desk.progress
    progress.lab = {"last": progress.lab.get("fault")}
    progress.done.pop(progress.key("lab"), None)
    progress.tries.pop(progress.key("lab"), None)
    for key in [key for key in progress.hints if key.startswith(progress.key("lab"))]:
        del progress.hints[key]
    return show(desk)


def _train(desk: Desk) -> None:
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
    raise BadUsage(desk.say("lab.unlucky"), "lab", f"{desk.prefix}lab new")


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


def answer(desk: Desk, words: Sequence[str]) -> str:
    """Name the failure."""
    from klinic.course.judge import contradiction, curve, right

    log = _ready(desk, "answer")
    given = slugs(words, desk.lang)
    if len(given) != 1:
        raise BadUsage(
            desk.say("error.count", n=1, logs="run", given=len(given)),
            "answer",
            desk.say("error.words"),
        )
    slug = given[0]
    desk.progress.tries.setdefault(desk.progress.key(), []).append(slug)
    found = lab_diagnosis(desk)
    if not right(log, slug):
        desk.failed = True
        why = contradiction(log, found, slug, desk.lang)
        return (
            flowed(desk.say("answer.wrong", log="run", slug=slug, why=why)) + "\n\n" + advice(desk)
        )
    if stage(desk) == "answer":
        desk.progress.lab["stage"] = "onset"
    told = desk.say("judge.in_log", log="run", slug=log.answer, curve=curve(log, found, desk.lang))
    return flowed(told) + "\n\n" + advice(desk)


def onset(desk: Desk, words: Sequence[str]) -> str:
    """Name the step at which it begins."""
    log = _ready(desk, "onset")
    step = _step(desk, words, "onset 50")
    good, text = labcheck.onset(desk, log, label(desk), lab_diagnosis(desk), step)
    return _checked(desk, good, text, "back", onset=step)


def back(desk: Desk, words: Sequence[str]) -> str:
    """Pick the checkpoint to go back to."""
    _ready(desk, "back")
    step = _step(desk, [word.removeprefix("checkpoint-") for word in words], "back 20")
    lab, place = desk.progress.lab, folder(desk)
    assert place is not None
    good, text = labcheck.checkpoint(desk, place, label(desk), lab["onset"], step)
    return _checked(desk, good, text, "change", checkpoint=step)


def change(desk: Desk, words: Sequence[str]) -> str:
    """Choose the one thing to change: a setting, or one group of settings to repair."""
    _ready(desk, "change")
    desk.progress.lab.pop("steps", None)
    changes, fix = labcheck.change(desk, words)
    text = desk.say("lab.changed", what=" ".join(words), step=desk.progress.lab["checkpoint"])
    return _checked(desk, True, text, "smoke", changes=changes, fix=fix, verdict=None)


def smoke(desk: Desk, words: Sequence[str]) -> str:
    """Run 20 steps (or as many as asked) from the checkpoint, with the change and without; each is drawn twice."""
    from klinic.course.wait import waiting
    from klinic.lab.runs import resume

    _ready(desk, "smoke")
    lab, place = desk.progress.lab, folder(desk)
    assert place is not None
    steps = (
        min(LONGEST, max(labcheck.SMOKE, _step(desk, words, "smoke 40")))
        if words
        else labcheck.SMOKE
    )
    steps = min(steps, STEPS - lab["checkpoint"])
    checkpoint = place / f"checkpoint-{lab['checkpoint']}"
    for name in ("control-2", "change-1", "change-2"):
        shutil.rmtree(place / name, ignore_errors=True)
        changed = name.startswith("change")
        with waiting(desk.say("lab.smoking", name=name), steps) as told:
            resume(
                checkpoint,
                place / name,
                steps=steps,
                changes=lab["changes"] if changed else {},
                fix=lab["fix"] if changed else (),
                reseed=1 if name.endswith("2") else None,
                checkpoint_every=0,
                progress=told,
            )
    verdict, text = labcheck.verdict(desk, place, lab_diagnosis(desk), lab["checkpoint"], steps)
    return _checked(desk, True, text, "judge", verdict=verdict, steps=steps)


def judge(desk: Desk, words: Sequence[str]) -> str:
    """Say whether the change helped; klinic's own verdict is shown beside."""
    _ready(desk, "judge")
    verdict = labcheck.word(desk, words)
    lab = desk.progress.lab
    good = verdict == lab["verdict"]
    place = folder(desk)
    assert place is not None
    text = labcheck.told(desk, place, lab_diagnosis(desk), lab["checkpoint"], lab["steps"])
    text += "\n" + flowed(
        desk.say("lab.judged" if good else "lab.misjudged", said=verdict, truth=lab["verdict"])
    )
    if not good:
        return _checked(desk, False, text, "judge")
    if lab["verdict"] != "better":
        unsure = lab["verdict"] == "inconclusive"
        text += "\n" + flowed(desk.say("lab.longer" if unsure else "lab.again", steps=lab["steps"]))
        return _checked(desk, True, text, "smoke" if unsure else "change")
    desk.progress.done[desk.progress.key()] = True
    what = label(desk)["what"][desk.lang]
    text += "\n" + flowed(
        desk.say("lab.was", what=what, at=label(desk)["inject_step"], cures=hidden(desk)["cures"])
    )
    return _checked(desk, True, text, "done")


def _ready(desk: Desk, wanted: str) -> Log:
    """The run, if the exercise has come to this step; earlier steps may be repeated."""
    if desk.task.kind != "lab":
        raise BadUsage(desk.say("lab.elsewhere", what=wanted), desk.task.typed, f"{desk.prefix}lab")
    log = lab_log(desk)
    if log is None:
        raise BadUsage(desk.say("lab.none"), wanted, f"{desk.prefix}lab")
    now = stage(desk)
    if now != "done" and STAGES.index(wanted) > STAGES.index(now):
        raise BadUsage(desk.say("lab.order", now=now), wanted, desk.say(f"lab.ask.{now}"))
    return log


def _step(desk: Desk, words: Sequence[str], example: str) -> int:
    if len(words) != 1 or not words[0].isdigit():
        raise BadUsage(
            desk.say("error.number", word=" ".join(words) or "-"),
            example.split()[0],
            desk.say("error.number_hint", example=example),
        )
    return int(words[0])


def _checked(desk: Desk, good: bool, text: str, then: str, **kept: Any) -> str:
    desk.failed = not good
    if good:
        desk.progress.lab.update(kept)
        desk.progress.lab["stage"] = then
    return flowed(text) + "\n\n" + advice(desk)
