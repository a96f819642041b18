"""The files of one run: ``metrics/KEY`` has a line "milliseconds value step" a point, ``params/KEY`` a value.

A key with slashes is a folder with a file. Format: mlflow/store/tracking/file_store.py of MLflow 3.17; a line may go on with
the name and the digest of a data set, and before MLflow 1.0 it had no step.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from klinic.sources import opened
from klinic.sources.mlflow import META, METRICS
from klinic.sources.points import Points
from klinic.sources.rows import Reading

PARAM_LIMIT = 1 << 16  # bytes; MLflow itself allows 6,000 characters
NAME_TAG = "mlflow.runName"  # before MLflow 1.30 a run's name stood only there


def read_run(folder: Path, reading: Reading) -> None:
    """Fill ``reading`` from one run's folder; one that was deleted stays empty."""
    meta = _meta(folder / META)
    if meta.get("lifecycle_stage") == "deleted":
        return
    reading.name = str(meta.get("run_name") or _text(folder / "tags" / NAME_TAG) or "").strip()
    for key, path in _files(folder / "params"):
        reading.config[key.replace("/", ".")] = (_text(path), str(path))
    points = Points()
    for key, path in _files(folder / METRICS):
        _metric(key, path, points, reading)
    reading.holds["rows"] += len(points.values)
    points.fill(reading)


def _metric(key: str, path: Path, points: Points, reading: Reading) -> None:
    *lines, rest = _bytes(path).split(b"\n")
    if rest:  # MLflow ends every line: this one is cut off, and so may be its step
        reading.holds["broken lines"] += 1
    for line in lines:
        parts = line.split()
        if not parts:
            continue
        try:
            step = int(parts[2]) if len(parts) > 2 else 0
            points.add_at(key, step, float(parts[1]), int(parts[0]))
        except (ValueError, IndexError):
            reading.holds["broken lines"] += 1


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for here, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            path = Path(here) / name
            yield path.relative_to(folder).as_posix(), path


def _meta(path: Path) -> dict[str, Any]:
    try:
        document = yaml.load(_text(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def _text(path: Path) -> str:
    return _bytes(path, PARAM_LIMIT).decode("utf-8", "replace") if path.is_file() else ""


def _bytes(path: Path, limit: int = -1) -> bytes:
    with opened(path) as stream:
        return stream.read(limit)
