"""From a path to runs: what their keys mean, what configured the run, what it saved.

Which files form one run is decided in :mod:`klinic.folders`. Of several logs of one run the one with the most points leads;
the others add the metrics it lacks, the configuration and the events. Configuration is read from what the log prints and
from YAML and JSON files named like one beside the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from klinic import sources
from klinic.configuration import configuration, configuration_beside, settings_of
from klinic.derive import derived
from klinic.errors import BadUsage, KlinicError, UnreadableInput, did_you_mean
from klinic.folders import CHECKPOINT_LIKE, name_of, run_folders
from klinic.run import Curve, Run
from klinic.saved import checkpoints
from klinic.sources.jobs import rotated, runs_of
from klinic.sources.jsonl import add_row
from klinic.sources.rows import Reading, Vocabulary
from klinic.states import compare_states
from klinic.trackers import RUNS, Log
from klinic.trainers import in_parts, known, tables
from klinic.trainers.convert import Converted, convert
from klinic.trainers.recognise import recognise
from klinic.vitals import ROLES, role_of

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

    words = _vocabulary(wanted)

    if str(path) == "-":
        return [_run([sources.read_standard_input(words)], None, trainer, wanted, extra, "stdin")]
    place = sources.whole_log(Path(path))
    if not place.is_dir():
        reading = _with_rotated(sources.read_file(place, words), place, words)
        beside = place.resolve().parent
        found = _by_run([reading])
        return [
            _run(
                parts,
                beside if len(found) == 1 else None,
                trainer,
                wanted,
                extra,
                part or reading.name or name_of(place),
            )
            for part, parts in found.items()
        ]
    runs, troubles = [], []
    for folder, logs in run_folders(place).items():
        found_here, missed = _of_folder(folder, logs, trainer, wanted, extra, words)
        runs += found_here
        troubles += missed
    return _worth_having(runs, troubles)


def read_folder(
    folder: Path,
    logs: Sequence[Log],
    *,
    trainer: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> list[Run]:
    """Read the runs of one folder of :func:`klinic.folders.run_folders`, and none of the folders below it.

    Raises UnreadableInput where nothing can be read.
    """
    wanted = dict(mapping or {})
    return _worth_having(*_of_folder(folder, logs, trainer, wanted, {}, _vocabulary(wanted)))


def _of_folder(
    folder: Path,
    logs: Sequence[Log],
    trainer: str | None,
    wanted: Mapping[str, str],
    extra: Mapping[str, tuple[Any, str]],
    words: Vocabulary,
) -> tuple[list[Run], list[KlinicError]]:
    """The runs whose logs lie in one folder, and what could not be read."""
    readings, troubles = sources.read_files(logs, str(folder), words)
    for reading in readings:
        compare_states(reading)
    found = _by_run(runs_of([r for r in readings if not r.rollouts or r.logged]))
    runs = []
    for part, parts in found.items():
        # What lies beside a file of several runs is of none of them in particular.
        home = folder if len(found) == 1 or not part else None
        name = part or next((r.name for r in parts if r.name), folder.resolve().name)
        runs.append(_run(parts, home, trainer, wanted, extra, name))
    return runs, troubles


def _worth_having(runs: list[Run], troubles: list[KlinicError]) -> list[Run]:
    with_metrics = [run for run in runs if run.curves]
    if not runs and troubles:
        raise troubles[0]
    return with_metrics or runs[:1]


def read_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    name: str = "run",
    folder: str | Path | None = None,
    config: Mapping[str, Any] | None = None,
    trainer: str | None = None,
    mapping: Mapping[str, str] | None = None,
) -> Run:
    """Read a run that is still in memory: its rows as they were logged, such as transformers' ``state.log_history``.

    rows: one mapping a step, with its step under a usual name. folder: where the run saves its checkpoints; configuration
    beside them is read. config: settings by the trainer's own names. Raises BadUsage for an unknown trainer.
    """
    reading = Reading(name, _vocabulary(mapping or {}))
    counted = 0
    for row in rows:
        counted = add_row(dict(row), counted, name, reading)
    stated = {key: (value, name) for key, value in (config or {}).items()}
    place = Path(folder) if folder is not None else None
    return _run([reading], place, trainer, mapping or {}, stated, name)


def _vocabulary(wanted: Mapping[str, str]) -> Vocabulary:
    def knows(key: str) -> bool:
        return key in wanted or known(key)

    return Vocabulary(
        knows, frozenset(key for table in tables().values() for key in table.summary), in_parts
    )


def _chosen(path: str | Path) -> tuple[str | Path, str | None]:
    """A path, and the name that stands after it (``mlflow.db:NAME``) where the whole is no path itself."""
    text = str(path)
    if ":" in text and not Path(text).exists():
        for at in (i for i, letter in enumerate(text) if letter == ":"):
            if at and Path(text[:at]).exists():
                return text[:at], text[at + 1 :]
    return path, None


def _with_rotated(reading: Reading, place: Path, words: Vocabulary) -> Reading:
    """A log together with what was rotated away from it, where the run goes on from there."""
    older = rotated(place)
    if not older or reading.parts or sources.claimed_by(place.name) is not None:
        return reading
    readings, _ = sources.read_files([(path, "") for path in older], str(place), words)
    whole = runs_of([*readings, reading])
    if len(whole) != 1 or whole[0].parts:
        return reading
    whole[0].at = reading.at
    return whole[0]


def _by_run(readings: list[Reading]) -> dict[str, list[Reading]]:
    """Run -> its readings: "" for the files that hold one run; a file of several runs names each."""
    runs: dict[str, list[Reading]] = {}
    for reading in readings:
        if not reading.parts:
            runs.setdefault("", []).append(reading)
        for name, part in reading.parts.items():
            runs.setdefault(name, []).append(part)
    return runs


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
    defined = {key: told for reading in readings for key, told in reading.defined.items()}
    converted = [convert(reading.columns, table, config, mapping, defined) for reading in readings]
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
