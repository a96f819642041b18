"""Which files of a folder form one run. It is decided here, and for trackers' folders in :mod:`klinic.trackers`.

* A file is one run. ``-`` is standard input.
* In a folder, all logs that lie directly in one folder are one run, unless their numbers contradict each other
  (:mod:`klinic.sources.jobs`); folders below are runs of their own, except those named after a process or for logs alone
  (logs, latest, trainer, orchestrator): they belong to the run above them.
* Checkpoint folders belong to the run above them; of the ``trainer_state.json`` files in them the newest is read,
  since each holds the whole history so far; that the others agree is checked (:mod:`klinic.states`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from klinic import sources
from klinic.configuration import CONFIG_NAMES, MODEL_FILES
from klinic.errors import UnreadableInput
from klinic.trackers import Log, gathered, of_wandb_itself

SCHEDULER_SUFFIX = re.compile(r"^\.[oe]\d+$")  # PBS and SGE: train.o4711
ROTATED_SUFFIX = re.compile(r"^\.\d{1,3}$")  # train.log.1 beside train.log
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
    r"(rollout|completion|sample|requirements|readme|license|merges|meta\.json|label\.json|^klinic\.json)",
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


def run_folders(place: Path) -> dict[Path, list[Log]]:
    """Folder of a run -> its logs. Raises UnreadableInput where there is none."""
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
    return groups


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
        (
            path.suffix.lower() not in LOG_SUFFIXES
            and not SCHEDULER_SUFFIX.match(path.suffix)
            and not (ROTATED_SUFFIX.match(path.suffix) and path.with_suffix("").exists())
        )
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


def name_of(place: Path) -> str:
    """What a run is called after its file, where the file itself does not say."""
    stem = re.sub(
        r"(\.log|\.txt|\.jsonl|\.json|\.csv|\.tsv|\.out|\.ipynb|\.parquet|\.db)+$", "", place.name
    )
    if sources.claimed_by(place.name) is not None and stem == place.name:
        return place.resolve().parent.name or place.name
    parent = place.resolve().parent.name
    return parent if stem.lower() in PLAIN_NAMES and parent else stem
