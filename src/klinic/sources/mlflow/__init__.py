"""MLflow's file store: a run is a folder with meta.yaml, and a file a metric and a parameter. Its database: see ``sqlite``."""

from __future__ import annotations

from pathlib import Path

from klinic.sources.rows import Reading

ORDER = 4
META, METRICS = "meta.yaml", "metrics"
# What lies in a run's folder; its artifacts may hold logs of their own.
INSIDE = frozenset({METRICS, "params", "tags", "inputs", "outputs", "traces"})


def is_log(folder: Path) -> bool:
    """Whether it is a run's folder."""
    return (folder / META).is_file() and (folder / METRICS).is_dir()


def read_folder(folder: Path, reading: Reading) -> None:
    """Fill ``reading`` from a run's folder. Raises UnreadableInput where a file in it cannot be read."""
    from klinic.sources.mlflow.files import read_run

    read_run(folder, reading)
