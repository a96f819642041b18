"""From a path to runs: which files form one run, what their keys mean, what configured the run, what it saved.

Which files form one run is decided here and nowhere else:

* A file is one run. ``-`` is standard input.
* In a folder, all logs that lie directly in one folder are one run; folders below are runs of their own, except those
  named after a process or for logs alone (logs, latest, trainer, orchestrator): they belong to the run above them.
* What trackers (TensorBoard, wandb, SwanLab, MLflow) leave in folders of their own: see :mod:`klinic.trackers`.
* Checkpoint folders belong to the run above them; of the ``trainer_state.json`` files in them only the newest
  is read, since each holds the whole history so far.
* Of several logs of one run the one with the most points leads; the others add the metrics it lacks, the
  configuration and the events.
* Configuration is read from what the log prints and from YAML and JSON files named like one beside the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from klinic import sources
from klinic.configuration import (
    CONFIG_NAMES,
    MODEL_FILES,
    configuration,
    configuration_beside,
    settings_of,
)
from klinic.derive import derived
from klinic.errors import BadUsage, UnreadableInput, did_you_mean
from klinic.run import Curve, Run
from klinic.saved import checkpoints
from klinic.sources.rows import Reading, Vocabulary
from klinic.trackers import RUNS, gathered, of_wandb_itself
from klinic.trainers import in_parts, known, tables
from klinic.trainers.convert import Converted, convert
from klinic.trainers.recognise import recognise
from klinic.vitals import ROLES, role_of

LOG_SUFFIXES = {
    ".log",
    ".txt",
    ".out",
    ".err",
    ".jsonl",
    ".ndjson",
    ".json",
    ".csv",
    ".tsv",
    ".ipynb",
    "",
}
NOT_LOGS = re.compile(
    r"(rollout|completion|sample|requirements|readme|license|merges|meta\.json|label\.json)",
    re.IGNORECASE,
)
PLAIN_NAMES = {
    "train",
    "training",
    "log",
    "logs",
    "output",
    "stdout",
    "metrics",
    "trainer_state",
    "run",
    "out",
    "slurm",
    "console",
    "progress",
    "step_logs",
}
CHECKPOINT_LIKE = re.compile(r"^(checkpoint-\d+|global_step_?\d+|iter_\d+|step_\d+)$")
# prime-rl keeps the logs of its two processes in such folders of one run; AReaL, slime and others keep logs/.
PROCESS_FOLDERS = {"logs", "latest", "trainer", "orchestrator"}
AIM = ".aim"
DEPTH = 6
FILES_LIMIT = 20_000
FILE_LIMIT = 4 << 30
# Forward-filled logs repeat a row until the next real one; so many identical rows in a row are no coincidence.
FORWARD_FILLED_SHARE = 0.5
FORWARD_FILLED_ROWS = 20


def read(path: str | Path, **options: Any) -> Run:
    """Read one run. Raises UnreadableInput where the path holds none or several."""
    found = read_all(path, **options)
    if len(found) != 1:
        raise UnreadableInput(
            f"it holds {len(found)} runs",
            str(path),
            "name one of them, as PATH:NAME; klinic diagnose takes them all",
        )
    return found[0]


def read_all(
    path: str | Path,
    *,
    trainer: str | None = None,
    mapping: Mapping[str, str] | None = None,
    config: str | Path | None = None,
) -> list[Run]:
    """Read every run under a path, or the one that PATH:NAME names. mapping: log key -> role ("entropy") or canonical name.

    Raises UnreadableInput where nothing can be read, BadUsage for an unknown trainer.
    """
    path, name = _chosen(path)
    if name is not None:
        runs = read_all(path, trainer=trainer, mapping=mapping, config=config)
        if not any(run.name == name for run in runs):
            names = [run.name for run in runs]
            near = did_you_mean(name, names)
            raise UnreadableInput(
                f"no run {name!r}", str(path), near or f"there are: {', '.join(names[:8])}"
            )
        return [run for run in runs if run.name == name]
    wanted = dict(mapping or {})
    extra = configuration(Path(config), required=True) if config else {}

    def knows(key: str) -> bool:
        return key in wanted or known(key)

    words = Vocabulary(
        knows, frozenset(key for table in tables().values() for key in table.summary), in_parts
    )

    if str(path) == "-":
        return [_run([sources.read_standard_input(words)], None, trainer, wanted, extra, "stdin")]
    place = sources.whole_log(Path(path))
    if not place.is_dir():
        reading = sources.read_file(place, words)
        beside = place.resolve().parent
        found = _by_run([reading])
        return [
            _run(
                parts,
                beside if len(found) == 1 else None,
                trainer,
                wanted,
                extra,
                part or reading.name or _name(place),
            )
            for part, parts in found.items()
        ]
    groups = gathered(_groups(place), place)
    if place.name == AIM or (not groups and (place / AIM).is_dir()):
        raise UnreadableInput(
            "a store of Aim's, which only Aim itself can read",
            str(place),
            "export the run's metrics with Aim (Metric.dataframe()) as CSV or Parquet with the columns step, key and value",
        )
    if not groups:
        raise UnreadableInput(
            "no log in this folder",
            str(place),
            "name the trainer's log, JSONL, CSV or trainer_state.json, or the folder it is in",
        )
    runs, troubles = [], []
    for folder, logs in groups.items():
        readings, missed = sources.read_files(logs, str(folder), words)
        troubles += missed
        readings = [reading for reading in readings if not reading.rollouts or reading.logged]
        found = _by_run(readings)
        for part, parts in found.items():
            # What lies beside a file of several runs is of none of them in particular.
            home = folder if len(found) == 1 or not part else None
            name = part or next((r.name for r in parts if r.name), folder.resolve().name)
            runs.append(_run(parts, home, trainer, wanted, extra, name))
    with_metrics = [run for run in runs if run.curves]
    if not runs and troubles:
        raise troubles[0]
    return with_metrics or runs[:1]


def _chosen(path: str | Path) -> tuple[str | Path, str | None]:
    """A path, and the name that stands after it (``mlflow.db:NAME``) where the whole is no path itself."""
    text = str(path)
    if ":" in text and not Path(text).exists():
        for at in (i for i, letter in enumerate(text) if letter == ":"):
            if at and Path(text[:at]).exists():
                return text[:at], text[at + 1 :]
    return path, None


def _by_run(readings: list[Reading]) -> dict[str, list[Reading]]:
    """Run -> its readings: "" for the files that hold one run; a file of several runs names each."""
    runs: dict[str, list[Reading]] = {}
    for reading in readings:
        if not reading.parts:
            runs.setdefault("", []).append(reading)
        for name, part in reading.parts.items():
            runs.setdefault(name, []).append(part)
    return runs


def _groups(place: Path) -> dict[Path, list[Path]]:
    """Folder of a run -> its log files."""
    groups: dict[Path, list[Path]] = {}
    states: dict[Path, list[tuple[int, Path]]] = {}
    seen = 0
    base = len(place.parts)
    for folder, below, names in os.walk(place):
        here = Path(folder)
        below[:] = sorted(
            name
            for name in below
            if not name.startswith(".")
            and name not in ("__pycache__", "node_modules", "wandb_cache")
        )
        if len(here.parts) - base >= DEPTH:
            below[:] = []
        seen += len(names)
        if seen > FILES_LIMIT:
            raise UnreadableInput(
                f"over {FILES_LIMIT:,} files", str(place), "name the folder of one run"
            )
        if CHECKPOINT_LIKE.match(here.name):
            if "trainer_state.json" in names:
                at = int(re.sub(r"\D", "", here.name) or 0)
                states.setdefault(here.parent, []).append((at, here / "trainer_state.json"))
            below[:] = []
            continue
        logs = [here / name for name in sorted(names) if _may_be_log(here / name)]
        whole = sources.folder_format(here)
        if whole is not None:
            logs.append(here)
        for module in {whole, *(sources.claimed_by(log.name) for log in logs)}:
            inside = getattr(module, "INSIDE", ())
            below[:] = [name for name in below if name not in inside]
        if logs:
            groups.setdefault(_run_folder(here, place), []).extend(logs)
    for run_folder, found in states.items():
        if not any(log.name == "trainer_state.json" for log in groups.get(run_folder, [])):
            groups.setdefault(run_folder, []).append(max(found)[1])
    return groups


def _run_folder(here: Path, place: Path) -> Path:
    """The folder of the run that logs in ``here`` belong to."""
    while here != place and here.name in PROCESS_FOLDERS:
        here = here.parent
    return here


def _may_be_log(path: Path) -> bool:
    if of_wandb_itself(path):
        return False
    if sources.claimed_by(path.name) is None and (
        path.suffix.lower() not in LOG_SUFFIXES
        or path.name.startswith(".")
        or path.name in MODEL_FILES
        or NOT_LOGS.search(path.name)
        or (CONFIG_NAMES.match(path.name) and path.suffix != ".log")
    ):
        return False
    try:
        return 0 < path.stat().st_size <= FILE_LIMIT
    except OSError:
        return False


def _name(place: Path) -> str:
    stem = re.sub(
        r"(\.log|\.txt|\.jsonl|\.json|\.csv|\.tsv|\.out|\.ipynb|\.parquet|\.db)+$", "", place.name
    )
    if sources.claimed_by(place.name) is not None and stem == place.name:
        return place.resolve().parent.name or place.name
    parent = place.resolve().parent.name
    return parent if stem.lower() in PLAIN_NAMES and parent else stem


def _run(
    readings: list[Reading],
    folder: Path | None,
    forced: str | None,
    mapping: Mapping[str, str],
    extra: Mapping[str, tuple[Any, str]],
    name: str,
) -> Run:
    keys = {key for reading in readings for key in reading.columns}
    settings: dict[str, tuple[Any, str]] = {}
    for reading in readings:
        for key, found in reading.config.items():
            settings.setdefault(key, found)
    text = "\n".join([reading.head for reading in readings] + list(settings))
    trainer, table = recognise(keys, text, forced)
    beside = configuration_beside(folder) if folder is not None else {}
    config = settings_of({**settings, **beside, **extra}, table)
    converted = [convert(reading.columns, table, config, mapping) for reading in readings]
    leading, curves = _merged(converted)
    curves = _without_forward_fill(curves)
    curves = derived(curves, config, trainer)
    lead = readings[leading]
    absent = {
        key: why for done in converted for key, why in done.absent.items() if key not in curves
    }
    # The clock's own columns also stand in the end-of-run summary: only what plays a role counts as a logged step.
    spans = [curve.steps for name, curve in curves.items() if role_of(name)] or [
        curve.steps for curve in curves.values()
    ]
    unread = sorted(
        {key for done in converted for key in done.unread}
        | {key for reading in readings for key in list(reading.unknown)[:50]}
    )
    return Run(
        name=name,
        path=lead.at,
        trainer=trainer,
        curves=curves,
        config=config,
        checkpoints=checkpoints(_saves(folder), table) if folder is not None else (),
        segments=lead.closed_segments(),
        events=tuple(event for reading in readings for event in reading.events),
        sources=tuple(reading.at for reading in readings),
        unread_keys=tuple(unread),
        absent=absent,
        holds={
            kind: sum(reading.holds[kind] for reading in readings)
            for kind in {k for reading in readings for k in reading.holds}
        },
        notes=tuple(
            note
            for note, holds in (
                ("counted", lead.numbered == "counted" and bool(curves)),
                ("rloo", "RLOO" in text),
            )
            if holds
        ),
        first=int(min(s[0] for s in spans)) if spans else 0,
        last=int(max(s[-1] for s in spans)) if spans else 0,
        logged=max((len(s) for s in spans), default=0),
    )


def _saves(folder: Path) -> Path:
    """Where the run in a folder saves: of OUT/runs/NAME (transformers' event files) it is OUT, if checkpoints lie there."""
    home = folder.resolve()
    try:
        if home.parent.name == RUNS and any(
            CHECKPOINT_LIKE.match(path.name) for path in home.parent.parent.iterdir()
        ):
            return home.parent.parent
    except OSError:
        pass
    return folder


def _merged(converted: list[Converted]) -> tuple[int, dict[str, Curve]]:
    """The index of the leading log, and its curves completed by those of the others."""
    weights = [sum(len(curve.values) for curve in done.curves.values()) for done in converted]
    leading = int(np.argmax(weights)) if weights else 0
    curves = dict(converted[leading].curves) if converted else {}
    for i, done in enumerate(converted):
        if i != leading:
            for name, curve in done.curves.items():
                curves.setdefault(name, curve)
    return leading, curves


def _without_forward_fill(curves: dict[str, Curve]) -> dict[str, Curve]:
    """Thin out a log whose writer repeats the last row on every step until the next real one."""
    full = [curve for curve in curves.values() if len(curve.values) >= FORWARD_FILLED_ROWS]
    moving = [
        curve for curve in full if len(set(curve.values.tolist())) > len(curve.values) // 50 + 3
    ]
    if len(moving) < 2 or len({len(curve.values) for curve in moving}) != 1:
        return curves
    same = np.ones(len(moving[0].values) - 1, dtype=bool)
    for curve in moving:
        same &= curve.values[1:] == curve.values[:-1]
    if same.mean() < FORWARD_FILLED_SHARE:
        return curves
    keep = np.r_[True, ~same]
    n = len(keep)
    return {
        name: Curve(curve.metric, curve.steps[keep], curve.values[keep])
        if len(curve.values) == n
        else curve
        for name, curve in curves.items()
    }


def parse_mapping(pairs: Iterable[str]) -> dict[str, str]:
    """``("entropy=my/key",)`` -> ``{"my/key": "entropy"}``. Raises BadUsage for an unknown role or a missing ``=``."""
    mapping: dict[str, str] = {}
    for pair in pairs:
        role, equals, key = pair.partition("=")
        if not equals or not key or not role:
            raise BadUsage(
                f"cannot understand {pair!r}",
                "--map",
                "write --map entropy=my/key: klinic's name, then the log's",
            )
        if role not in ROLES and "/" not in role:
            raise BadUsage(
                f"unknown metric {role!r}",
                "--map",
                did_you_mean(role, ROLES) or f"known: {', '.join(ROLES)}",
            )
        mapping[key] = role
    return mapping
