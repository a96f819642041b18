"""A run on disk: configuration, metrics, samples, checkpoints and the label.

run_config.json   the settings it began with
metrics.jsonl     one row a step, flushed at once
rollouts.jsonl    the first two groups of every tenth step
label.json        what was injected and when; what became manifest and when
checkpoint-40/    the state before step 40: weights.npz, state.json
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from klinic.errors import BadUsage, UnreadableInput
from klinic.files import write_whole
from klinic.lab.faults import fault_named, start_of
from klinic.lab.manifest import manifest
from klinic.lab.settings import Settings, changed, repairs
from klinic.lab.trainer import Trainer

SAMPLES_EVERY, SAMPLED_GROUPS = 10, 2
Told = Callable[[dict[str, Any]], None]


def run(
    out: str | Path,
    fault: str = "healthy",
    *,
    task: str = "max",
    base: int = 0,
    seed: int = 1,
    steps: int = 200,
    strength: str = "usual",
    at: int | None = None,
    changes: Mapping[str, Any] | None = None,
    checkpoint_every: int = 20,
    progress: Told | None = None,
) -> Path:
    """Train from a base model with one fault, and write the run to ``out``.

    at: the step at which the fault is switched, by default the fault's own. changes: further settings, from the start.
    Raises BadUsage for an unknown name or where ``out`` is not empty. The same arguments give the same files.
    """
    chosen = fault_named(fault)
    settings = changed(start_of(chosen, task, base), changes or {})
    injected = {k: v for k, v in chosen.switched(strength).items() if k not in (changes or {})}
    at = chosen.at if at is None else at
    if at == 0:
        settings, pending = changed(settings, injected), {}
    else:
        pending = injected
    trainer = Trainer(settings, seed, at, pending)
    trainer.stale_left = settings.stale_queue
    label = {
        "fault": chosen.name,
        "failure": chosen.failure,
        "what": dict(chosen.what),
        "strength": strength,
        "injected": injected,
        "inject_step": at,
        "task": settings.task,
        "base": base,
        "seed": seed,
    }
    return _train(trainer, Path(out), settings, label, steps, checkpoint_every, progress)


def resume(
    checkpoint: str | Path,
    out: str | Path,
    *,
    steps: int = 20,
    changes: Mapping[str, Any] | None = None,
    fix: Collection[str] = (),
    reseed: int | None = None,
    checkpoint_every: int = 20,
    progress: Told | None = None,
) -> Path:
    """Go on from a checkpoint for ``steps`` steps, with some settings changed or groups of them repaired.

    Nothing changed and no ``reseed``: the same steps bit for bit. A change also holds against a fault that the
    original run switches only later. Raises UnreadableInput for a broken checkpoint, BadUsage for an unknown name.
    """
    numbers, arrays, settings, pending, label = _loaded(Path(checkpoint))
    turned = {**repairs(fix), **(changes or {})}
    settings = changed(settings, turned)
    pending = {name: value for name, value in pending.items() if name not in turned}
    seed = numbers["seed"] if reseed is None else int(numbers["seed"]) * 1000 + 500 + reseed
    trainer = Trainer(settings, seed, numbers["at"], pending)
    trainer.restore(numbers, arrays)
    if "stale_queue" in turned:
        trainer.stale_left = settings.stale_queue
    label = {
        **label,
        "resumed_from": numbers["step"],
        "changed": turned,
        "fixed": list(fix),
        "reseed": reseed,
    }
    return _train(trainer, Path(out), settings, label, steps, checkpoint_every, progress)


def _train(
    trainer: Trainer,
    out: Path,
    settings: Settings,
    label: dict[str, Any],
    steps: int,
    checkpoint_every: int,
    progress: Told | None,
) -> Path:
    from threadpoolctl import threadpool_limits

    _make(out)
    updates = settings.epochs * settings.minibatches
    config = {**msgspec.structs.asdict(settings), "updates_per_batch": updates}
    _write_json(out / "run_config.json", config)
    _write_json(out / "label.json", label)
    rows: list[dict[str, Any]] = []
    # One BLAS thread: with two the sums change from run to run, and small matrices are multiplied more slowly.
    with (
        threadpool_limits(limits=1),
        open(out / "metrics.jsonl", "w") as metrics,
        open(out / "rollouts.jsonl", "w") as rollouts,
    ):
        for done in range(steps):
            if checkpoint_every and trainer.step % checkpoint_every == 0:
                _save(trainer, out, label)
            row, samples = trainer.train_step()
            metrics.write(json.dumps(_short(row)) + "\n")
            metrics.flush()
            if row["step"] % SAMPLES_EVERY == 0:
                kept = samples[: SAMPLED_GROUPS * trainer.settings.group]
                rollouts.writelines(json.dumps(_short(sample)) + "\n" for sample in kept)
                rollouts.flush()
            rows.append(row)
            if progress is not None:
                progress({**row, "done": done + 1, "of": steps})
        if checkpoint_every:
            _save(trainer, out, label)
    _write_json(out / "label.json", {**label, "manifest": manifest(label["failure"], rows)})
    return out


def _make(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise BadUsage("the folder is not empty", str(out), "name a new one with -o")
    except OSError as trouble:
        raise BadUsage(
            f"cannot be made ({trouble.strerror})", str(out), "name a folder that may be written to"
        ) from None


def _save(trainer: Trainer, out: Path, label: Mapping[str, Any]) -> None:
    """Write a checkpoint to a temporary folder and rename it."""
    place = out / f"checkpoint-{trainer.step}"
    temporary = out / f".{place.name}.part"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    numbers, arrays = trainer.state()
    np.savez(temporary / "weights.npz", **arrays)  # type: ignore[arg-type]
    document = {
        "numbers": numbers,
        "settings": msgspec.structs.asdict(trainer.settings),
        "fault": trainer.fault,
        "label": label,
    }
    _write_json(temporary / "state.json", document)
    os.replace(temporary, place)


def _loaded(
    checkpoint: Path,
) -> tuple[dict[str, Any], dict[str, Any], Settings, dict[str, Any], dict[str, Any]]:
    try:
        document = json.loads((checkpoint / "state.json").read_text())
        with np.load(checkpoint / "weights.npz") as saved:
            arrays = {name: saved[name] for name in saved.files}
        settings = msgspec.convert(document["settings"], Settings)
        return document["numbers"], arrays, settings, document["fault"], document["label"]
    except (OSError, ValueError, KeyError, msgspec.ValidationError) as trouble:
        raise UnreadableInput(
            f"no checkpoint of the lab ({trouble})",
            str(checkpoint),
            "name a checkpoint folder, e.g. DIR/checkpoint-40",
        ) from None


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text.encode())


def _short(row: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers to six digits."""
    return {
        name: float(f"{value:.6g}")
        if isinstance(value, float)
        else _short(value)
        if isinstance(value, dict)
        else value
        for name, value in row.items()
    }
