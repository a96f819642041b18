"""MLflow's database. Schema: mlflow/store/tracking/dbmodels/models.py of MLflow 3.17.

A NaN is stored as 0 with is_nan set, an infinity as the largest float (sqlalchemy_store.py, log_metric).
"""

from __future__ import annotations

import math
import sqlite3
import sys

from klinic.sources.points import Points
from klinic.sources.rows import Reading

TABLES = {
    "runs": {"run_uuid", "experiment_id"},
    "metrics": {"run_uuid", "key", "value", "timestamp"},
    "params": {"run_uuid", "key", "value"},
}
LARGEST = sys.float_info.max
NAME_TAG = "mlflow.runName"  # before MLflow 1.30 a run's name stood only there


def runs(connection: sqlite3.Connection, tables: dict[str, set[str]]) -> dict[str, str]:
    """Run -> its name, of every run that was not deleted and logged something, in the order in which they began."""
    name = "r.name" if "name" in tables["runs"] else "NULL"
    if {"run_uuid", "key", "value"} <= tables.get("tags", set()):
        tag = f"SELECT t.value FROM tags t WHERE t.run_uuid = r.run_uuid AND t.key = '{NAME_TAG}'"
        name = f"coalesce(nullif({name}, ''), ({tag}))"
    kept = "lifecycle_stage IS NOT 'deleted'"
    alive = f"r.{kept}" if "lifecycle_stage" in tables["runs"] else "1"
    if "lifecycle_stage" in tables.get("experiments", set()):
        alive += f" AND r.experiment_id IN (SELECT experiment_id FROM experiments WHERE {kept})"
    began = "r.start_time" if "start_time" in tables["runs"] else "r.rowid"
    found = connection.execute(
        f"SELECT r.run_uuid, {name} FROM runs r WHERE {alive}"
        f" AND EXISTS (SELECT 1 FROM metrics m WHERE m.run_uuid = r.run_uuid) ORDER BY {began}"
    )
    return {str(run): str(called or "") for run, called in found}


def read_run(
    connection: sqlite3.Connection, tables: dict[str, set[str]], run: str, reading: Reading
) -> None:
    """Fill ``reading`` with one run's metrics and parameters."""
    for key, value in connection.execute(
        "SELECT key, value FROM params WHERE run_uuid = ?", (run,)
    ):
        reading.config[str(key).replace("/", ".")] = (value, f"{reading.at}:params")
    points = Points()
    step = "step" if "step" in tables["metrics"] else "0"
    nan = "is_nan" if "is_nan" in tables["metrics"] else "0"
    for key, at, value, time, is_nan in connection.execute(
        f"SELECT key, {step}, value, timestamp, {nan} FROM metrics WHERE run_uuid = ?"
        " ORDER BY timestamp, rowid",
        (run,),
    ):
        if not isinstance(value, float | int) or not isinstance(at, int):
            reading.holds["broken lines"] += 1
            continue
        number = math.nan if is_nan else float(value)
        if abs(number) >= LARGEST:
            number = math.copysign(math.inf, number)
        points.add_at(str(key), at, number, time if isinstance(time, int) else 0)
    reading.holds["rows"] += len(points.values)
    points.fill(reading)
