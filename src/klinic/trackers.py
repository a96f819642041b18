"""Which folders of a tracker's files belong to one run.

* TensorBoard: a folder of event files is a run. Folders of event files below it are its tag groups, as are train, eval and
  the like side by side. ``runs/`` beside a trainer's own state holds that run's restarts, else a run per folder.
* wandb and SwanLab: a folder ``run-DATE-ID`` (``offline-run-DATE-ID``) is a run, its ``files/output.log`` included; of one ID,
  those are a run and its resumptions. A single run in ``wandb/`` or ``swanlog/`` belongs to the logs beside that folder.
* MLflow: a folder with ``meta.yaml`` and ``metrics/`` is a run. A database of MLflow's or Trackio's holds several.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

TAG_GROUPS = re.compile(r"^(train(ing)?|eval(uation)?|val(id(ation)?)?|test(ing)?)$", re.IGNORECASE)
RUNS = "runs"  # where torch and transformers put a folder per start
TRACKED = {"wandb", "swanlog"}  # where they put a folder per run
WANDB_RUN = re.compile(r"^(offline-)?run-\d{8}_\d{6}-(?P<id>\w+)$")
# Of wandb's and SwanLab's own running, and numbers that are no history.
WANDB_OWN = re.compile(
    r"^(debug(-internal|-cli|-core)?(\.\w+)*\.log|wandb-(summary|metadata|events)\.jsonl?|swanlab-metadata\.json|diff\.patch)$"
)
STATE = "trainer_state.json"


class Log(NamedTuple):
    """One file of a run; group: the tag group that its folder stands for, as in ``eval/``."""

    path: Path
    group: str = ""


def gathered(found: Mapping[Path, list[Path]], place: Path) -> dict[Path, list[Log]]:
    """Folder of a run -> its files. found: folder -> the logs that lie in it; place: where the search began."""
    groups = {folder: [Log(path) for path in paths] for folder, paths in found.items()}
    _event_files(groups, place)
    _wandb(groups)
    return {folder: logs for folder, logs in groups.items() if logs}


def is_event_file(path: Path) -> bool:
    """Whether it is TensorBoard's."""
    return "tfevents" in path.name


def of_wandb_itself(path: Path) -> bool:
    """Whether it is wandb's log of its own running, or a summary."""
    return bool(WANDB_OWN.match(path.name))


def _event_files(groups: dict[Path, list[Log]], place: Path) -> None:
    holders = {
        folder for folder, logs in groups.items() if any(is_event_file(log.path) for log in logs)
    }
    owners: dict[Path, Path] = {}
    for folder in sorted(holders):
        alone = all(is_event_file(log.path) for log in groups[folder])
        above = [
            parent
            for parent in folder.parents
            if parent in holders and parent.name != RUNS and parent.is_relative_to(place)
        ]
        if alone and above:
            owners[folder] = above[-1]
        elif alone and TAG_GROUPS.match(folder.name) and folder != place:
            owners[folder] = folder.parent
        else:
            owners[folder] = folder
    below: dict[Path, set[Path]] = {}
    for owner in owners.values():
        if owner.parent.name == RUNS and owner != place:
            below.setdefault(owner.parent.parent, set()).add(owner)
    for folder, owner in owners.items():
        home = owner.parent.parent
        beside = groups.get(home, [])
        ours = owner in below.get(home, set()) and (
            any(log.path.name == STATE for log in beside)
            or (len(below[home]) == 1 and bool(beside))
        )
        target = home if ours else owner
        group = "" if folder == owner else folder.relative_to(owner).as_posix()
        moved = [log for log in groups[folder] if is_event_file(log.path)]
        groups[folder] = [log for log in groups[folder] if not is_event_file(log.path)]
        groups.setdefault(target, []).extend(Log(log.path, group) for log in moved)


def _wandb(groups: dict[Path, list[Log]]) -> None:
    resumed: dict[tuple[Path, str], list[Path]] = {}
    for folder in sorted(groups):
        home = next((p for p in (folder, *folder.parents) if WANDB_RUN.match(p.name)), None)
        if home is None:
            continue
        match = WANDB_RUN.match(home.name)
        assert match is not None
        starts = resumed.setdefault((home.parent, match["id"]), [])
        if home not in starts:
            starts.append(home)
        if folder != home:
            groups.setdefault(home, []).extend(groups.pop(folder))
    for starts in resumed.values():
        starts.sort(key=lambda home: home.name.removeprefix("offline-"))
        for earlier in starts[:-1]:
            groups[starts[-1]][:0] = groups.pop(earlier)
    for parent in {parent for parent, _ in resumed}:
        runs = [starts[-1] for (above, _), starts in resumed.items() if above == parent]
        beside = groups.get(parent.parent, [])
        if parent.name in TRACKED and len(runs) == 1 and beside:
            beside.extend(groups.pop(runs[0]))
