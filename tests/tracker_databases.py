"""Writes trackers' databases and folders with nothing but the standard library, after their published schemas."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

# mlflow/store/tracking/dbmodels/models.py, as mlflow 3.17 creates them; keys of other tables left out.
MLFLOW = """
CREATE TABLE experiments (experiment_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(256), lifecycle_stage VARCHAR(32));
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250), status VARCHAR(9), start_time BIGINT,
  lifecycle_stage VARCHAR(20), experiment_id INTEGER);
CREATE TABLE metrics (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
  run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL, is_nan BOOLEAN DEFAULT '0' NOT NULL,
  CONSTRAINT metric_pk PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan));
CREATE TABLE params (key VARCHAR(250) NOT NULL, value VARCHAR(8000) NOT NULL, run_uuid VARCHAR(32) NOT NULL,
  CONSTRAINT param_pk PRIMARY KEY (key, run_uuid));
CREATE TABLE tags (key VARCHAR(250) NOT NULL, value VARCHAR(8000), run_uuid VARCHAR(32) NOT NULL);
"""
# trackio/sqlite_storage.py of trackio 0.43
TRACKIO = """
CREATE TABLE metrics (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, timestamp TEXT NOT NULL,
  run_name TEXT NOT NULL, step INTEGER NOT NULL, metrics TEXT NOT NULL);
CREATE TABLE configs (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, run_name TEXT NOT NULL,
  config TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(run_id));
CREATE TABLE alerts (id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT, run_name TEXT, title TEXT, text TEXT, step INTEGER);
"""


def mlflow_database(path, runs, metrics, params=()):
    """runs: (id, name, stage). metrics: (run, key, step, value, milliseconds, is_nan). params: (run, key, value)."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(MLFLOW)
        db.execute("INSERT INTO experiments VALUES (1, 'e', 'active'), (2, 'gone', 'deleted')")
        for n, (run, name, stage) in enumerate(runs):
            experiment = 2 if stage == "experiment deleted" else 1
            stage = "deleted" if stage == "deleted" else "active"
            db.execute(
                "INSERT INTO runs VALUES (?, ?, 'FINISHED', ?, ?, ?)",
                (run, name, n, stage, experiment),
            )
        db.executemany(
            "INSERT INTO metrics (run_uuid, key, step, value, timestamp, is_nan) VALUES (?, ?, ?, ?, ?, ?)",
            metrics,
        )
        db.executemany("INSERT INTO params (run_uuid, key, value) VALUES (?, ?, ?)", params)
    return path


def trackio_database(path, rows, configs=(), wal=True):
    """rows: (run id, name, step, {key: value}). configs: (run id, name, {key: value}). Returns the open writer."""
    db = sqlite3.connect(path)
    if wal:
        db.execute("PRAGMA journal_mode = WAL")
    db.executescript(TRACKIO)
    trackio_log(db, rows)
    for run, name, config in configs:
        db.execute(
            "INSERT INTO configs (run_id, run_name, config, created_at) VALUES (?, ?, ?, '')",
            (run, name, json.dumps(config).encode()),
        )
    db.commit()
    return db


def trackio_log(db, rows):
    db.executemany(
        "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, '', ?, ?, ?)",
        [(run, name, step, json.dumps(row).encode()) for run, name, step, row in rows],
    )
    db.commit()


def mlflow_folder(folder, metrics, params=(), name="a run", stage="active"):
    """metrics: key -> [(milliseconds, value, step), ...]."""
    (folder / "metrics").mkdir(parents=True)
    (folder / "meta.yaml").write_text(
        f"run_id: {folder.name}\nrun_name: {name}\nlifecycle_stage: {stage}\n"
    )
    for key, points in metrics.items():
        path = folder / "metrics" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{time} {value} {step}\n" for time, value, step in points))
    for key, value in params:
        path = folder / "params" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(value))
    return folder
