"""From a path to runs: which files form one run, what their keys mean, what configured the run, what it saved.

Which files form one run is decided here and nowhere else:

* A file is one run. ``-`` is standard input.
* In a folder, all logs that lie directly in one folder are one run; folders below are runs of their own.
* Checkpoint folders belong to the run above them; of the ``trainer_state.json`` files in them only the newest
  is read, since each holds the whole history so far.
* Of several logs of one run the one with the most points leads; the others add the metrics it lacks, the
  configuration and the events.
* Configuration is read from what the log prints and from YAML and JSON files named like one beside the log.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from klinic import sources
from klinic.errors import BadUsage, UnreadableInput, did_you_mean
from klinic.run import Checkpoint, Curve, Metric, Run, Setting, Trainer
from klinic.sources.rows import Reading, Vocabulary, flatten, number
from klinic.trainers import Table, known, tables
from klinic.trainers.convert import Converted, convert
from klinic.trainers.recognise import recognise
from klinic.vitals import ROLES, players, role_of

LOG_SUFFIXES = {".log", ".txt", ".out", ".err", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ""}
CONFIG_NAMES = re.compile(
    r"^(config|training_args|args|arguments|hparams|hyper_?params|grpo|ppo|train|overrides|run_config).*\.(ya?ml|json)$",
    re.IGNORECASE,
)
MODEL_FILES = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "adapter_config.json",
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
            f"it holds {len(found)} runs", str(path), "name one of them, or use klinic.read_all"
        )
    return found[0]


def read_all(
    path: str | Path,
    *,
    trainer: str | None = None,
    mapping: Mapping[str, str] | None = None,
    config: str | Path | None = None,
) -> list[Run]:
    """Read every run under a path. mapping: log key -> role ("entropy") or canonical name.

    Raises UnreadableInput where nothing can be read, BadUsage for an unknown trainer.
    """
    wanted = dict(mapping or {})
    extra = _configuration(Path(config), required=True) if config else {}

    def knows(key: str) -> bool:
        return key in wanted or known(key)

    words = Vocabulary(
        knows, frozenset(key for table in tables().values() for key in table.summary)
    )

    if str(path) == "-":
        return [_run([sources.read_standard_input(words)], None, trainer, wanted, extra, "stdin")]
    place = Path(path)
    if not place.is_dir():
        reading = sources.read_file(place, words)
        beside = place.resolve().parent
        return [_run([reading], beside, trainer, wanted, extra, _name(place))]
    groups = _groups(place)
    if not groups:
        raise UnreadableInput(
            "no log in this folder",
            str(place),
            "name the trainer's log, JSONL, CSV or trainer_state.json, or the folder it is in",
        )
    runs, troubles = [], []
    for folder, logs in groups.items():
        readings = []
        for log in logs:
            try:
                readings.append(sources.read_file(log, words))
            except UnreadableInput as trouble:
                troubles.append(trouble)
        readings = [reading for reading in readings if not reading.rollouts or reading.logged]
        if readings:
            runs.append(_run(readings, folder, trainer, wanted, extra, folder.resolve().name))
    with_metrics = [run for run in runs if run.curves]
    if not runs and troubles:
        raise troubles[0]
    return with_metrics or runs[:1]


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
        if logs:
            groups[here] = logs
    for run_folder, found in states.items():
        if not any(log.name == "trainer_state.json" for log in groups.get(run_folder, [])):
            groups.setdefault(run_folder, []).append(max(found)[1])
    return groups


def _may_be_log(path: Path) -> bool:
    if (
        path.suffix.lower() not in LOG_SUFFIXES
        or path.name.startswith(".")
        or path.name in MODEL_FILES
    ):
        return False
    if NOT_LOGS.search(path.name) or (CONFIG_NAMES.match(path.name) and path.suffix != ".log"):
        return False
    try:
        return 0 < path.stat().st_size <= FILE_LIMIT
    except OSError:
        return False


def _name(place: Path) -> str:
    stem = re.sub(r"(\.log|\.txt|\.jsonl|\.json|\.csv|\.tsv|\.out)+$", "", place.name)
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
    beside = _configuration_beside(folder) if folder is not None else {}
    config = _settings({**settings, **beside, **extra}, table)
    converted = [convert(reading.columns, table, config, mapping) for reading in readings]
    leading, curves = _merged(converted)
    curves = _without_forward_fill(curves)
    curves = _derived(curves, config, table, trainer)
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
        checkpoints=_checkpoints(folder, table) if folder is not None else (),
        segments=lead.closed_segments(),
        events=tuple(event for reading in readings for event in reading.events),
        sources=tuple(reading.at for reading in readings),
        unread_keys=tuple(unread),
        absent=absent,
        holds={
            kind: sum(reading.holds[kind] for reading in readings)
            for kind in {k for reading in readings for k in reading.holds}
        },
        notes=("counted",) if lead.numbered == "counted" and curves else (),
        first=int(min(s[0] for s in spans)) if spans else 0,
        last=int(max(s[-1] for s in spans)) if spans else 0,
        logged=max((len(s) for s in spans), default=0),
    )


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


# Advantages divided by the group's std: below this the early level comes from something else (science.md 2.3:
# un-normalised lab runs start at 0.39 to 0.49).
NORMALISED_FROM = 0.6
DDOF_ONE = {"trl", "verl"}  # torch.std divides by G - 1 (science.md finding 3)


def _derived(
    curves: dict[str, Curve], config: Mapping[str, Setting], table: Table, trainer: Trainer
) -> dict[str, Curve]:
    """adv_std from the share of zero-variance groups and back, where the identity holds (science.md finding 3)."""
    adv, zero = players("adv_std", curves), players("zero_std", curves)
    scaling = config.get("advantage_scaling")
    if scaling is not None and str(scaling.value).lower() in ("none", "false", "batch", "no"):
        return curves
    size = config.get("group_size")
    group = (
        size.value
        if size is not None and isinstance(size.value, int | float) and size.value > 1
        else None
    )
    cap = float(np.sqrt((group - 1) / group)) if group and trainer.name in DDOF_ONE else 1.0
    if zero and not adv:
        source = curves[zero[0]]
        values = np.sqrt(np.clip(1 - source.values, 0, 1)) * cap
        how = f"sqrt(1 - zero-variance share){f' * {cap:.3f} for groups of {group:g}' if cap < 1 else ''}"
        metric = Metric(
            "adv_std/from_zero_std",
            "std of group-normalised advantages, derived",
            "1",
            source.metric.source_key,
            how,
            (source.metric.name,),
        )
        return {**curves, metric.name: Curve(metric, source.steps, values)}
    if (
        adv
        and not zero
        and not players("value_loss", curves)
        and _is_group_normalised(curves, adv[0])
    ):
        source = curves[adv[0]]
        values = np.clip(1 - np.square(source.values / cap), 0, 1)
        metric = Metric(
            "groups/from_adv_std",
            "share of groups without variance, derived",
            "share",
            source.metric.source_key,
            "1 - adv_std^2",
            (source.metric.name,),
        )
        return {**curves, metric.name: Curve(metric, source.steps, values)}
    return curves


def _is_group_normalised(curves: Mapping[str, Curve], name: str) -> bool:
    values = curves[name].values[np.isfinite(curves[name].values)]
    if not len(values):
        return False
    early = float(np.median(values[: max(8, len(values) // 8)]))
    spread = players("reward_std", curves)
    if spread:
        other = curves[spread[0]].values
        other = other[np.isfinite(other)]
        # Without the division the std of the advantages is the std of the rewards.
        if len(other) == len(values) and np.median(np.abs(other - values)) < 0.1 * max(
            1e-9, float(np.median(values))
        ):
            return False
    return NORMALISED_FROM <= early <= 1.5 or len(values) < 8


def _configuration_beside(folder: Path) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    places = [folder, folder / ".hydra", folder / "files", folder / "config"]
    for place in places:
        try:
            names = sorted(place.iterdir()) if place.is_dir() else []
        except OSError:
            continue
        for path in names:
            if (
                CONFIG_NAMES.match(path.name)
                and path.name not in MODEL_FILES
                and path.is_file()
                and path.stat().st_size < 4 << 20
            ):
                for key, value in _configuration(path, required=False).items():
                    found.setdefault(key, value)
    return found


def _configuration(path: Path, required: bool) -> dict[str, tuple[Any, str]]:
    """Leaves of a YAML or JSON configuration as {"a.b": (value, path)}."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as trouble:
        if not required:
            return {}
        raise UnreadableInput(
            f"cannot be read ({trouble.strerror})", str(path), "--config names a YAML or JSON file"
        ) from None
    try:
        if path.suffix == ".json":
            document = json.loads(text)
        else:
            import yaml

            document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception as trouble:  # yaml and json each have their own tree of errors
        if not required:
            return {}
        raise UnreadableInput(
            f"broken configuration: {str(trouble).splitlines()[0][:100]}",
            str(path),
            "--config names a YAML or JSON file",
        ) from None
    if not isinstance(document, dict):
        if not required:
            return {}
        raise UnreadableInput(
            "the configuration is no mapping",
            str(path),
            "--config names a YAML or JSON file of keys and values",
        )
    leaves: dict[str, tuple[Any, str]] = {}
    for key, value in flatten(document):
        name = str(key).replace("/", ".")
        leaves[name.removesuffix(".value")] = (
            value,
            str(path),
        )  # wandb's config.yaml nests {value: ...}
    return leaves


def _settings(found: Mapping[str, tuple[Any, str]], table: Table) -> dict[str, Setting]:
    """Knobs whose value the configuration states; a dotted name matches its own ending too."""
    by_ending: dict[str, str] = {}
    for key in found:
        by_ending.setdefault(key.rpartition(".")[2], key)
    settings: dict[str, Setting] = {}
    for knob, rule in table.knob.items():
        for name in rule.config:
            if name in found:
                at_key: str | None = name
            elif "." in name:
                at_key = next((k for k in found if k.endswith("." + name)), None)
            else:
                at_key = by_ending.get(name)
            if at_key is not None:
                value, at = found[at_key]
                if (
                    isinstance(value, str)
                    and (parsed := number(value)) is not None
                    and not value.endswith("%")
                ):
                    value = int(parsed) if value.lstrip("+-").isdigit() else parsed
                if value is not None and not isinstance(value, dict | list):
                    settings[knob] = Setting(knob, rule.flag, value, at)
                    break
    _derive_settings(settings)
    return settings


def _derive_settings(settings: dict[str, Setting]) -> None:
    """verl states the updates per batch as epochs over minibatches; the prompts per step as batch over group."""
    batch, mini = settings.get("prompts_per_step"), settings.get("mini_batch")
    epochs = settings.get("updates_per_batch")
    if (
        batch is not None
        and mini is not None
        and mini.value
        and isinstance(batch.value, int | float)
        and isinstance(mini.value, int | float)
    ):
        count = max(1, round(batch.value / mini.value)) * (
            int(epochs.value) if epochs is not None else 1
        )
        settings["updates_per_batch"] = Setting(
            "updates_per_batch", epochs.flag if epochs else mini.flag, count, mini.at
        )


def _checkpoints(folder: Path, table: Table) -> tuple[Checkpoint, ...]:
    """Saved policies under the run's folder, oldest first, with what is missing of each."""
    rule = table.checkpoint
    patterns = (
        [re.compile(rule.pattern)]
        if rule.pattern
        else [re.compile(t.checkpoint.pattern) for t in tables().values() if t.checkpoint.pattern]
    )
    found: dict[tuple[int, str], Checkpoint] = {}
    base = len(folder.parts)
    for here, below, _ in os.walk(folder):
        place = Path(here)
        if len(place.parts) - base >= 3:
            below[:] = []
        kept = []
        for name in below:
            match = next((m for pattern in patterns if (m := pattern.search(name))), None)
            if match is None:
                kept.append(name)
                continue
            step = int(match.group(1))
            path = place / name
            found[step, name] = Checkpoint(step, name, str(path), _missing(path, rule.parts))
        below[:] = [name for name in kept if not name.startswith(".")]
        if len(found) > 10_000:
            break
    return tuple(found[key] for key in sorted(found))


def _missing(path: Path, parts: Iterable[str]) -> tuple[str, ...]:
    def there(pattern: str) -> bool:
        try:
            return any(found.stat().st_size > 0 for found in path.glob(pattern))
        except OSError:
            return False

    try:
        if not any(path.iterdir()):
            return ("everything",)
    except OSError:
        return ("everything",)
    return tuple(
        part for part in parts if not any(there(alternative) for alternative in part.split("|"))
    )


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
