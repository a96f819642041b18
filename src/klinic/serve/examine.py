"""One place read, judged and remembered: what the process does that works in the background."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from klinic.diagnosis import Diagnosis
from klinic.errors import KlinicError
from klinic.run import Run
from klinic.serve.confined import confine, within
from klinic.serve.store import Store
from klinic.text import LANGUAGES
from klinic.trackers import Log

BINS, WIDE, HIGH = 60, 120, 28  # points of a sparkline, and the box it is drawn in
OLD = 3600.0  # seconds: a run that is older when first seen is shown, and makes no alert
_open: dict[str, Any] = {}


def begin(roots: Sequence[str], state: str, mapping: dict[str, str], trainer: str | None) -> None:
    """Prepare this process: it ends with the one that started it and opens nothing outside the given folders."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    from klinic.rollouts.kept import base as cache
    from klinic.settings import settings
    from klinic.thresholds import CHOSEN
    from klinic.watch.state import Memory

    CHOSEN.set(settings().thresholds)
    _open.update(mapping=mapping, trainer=trainer, skip=settings().skip, roots=list(roots))
    _open["store"], _open["memory"] = Store(Path(state)), Memory(Path(state))
    _warm()
    confine(roots, os.path.realpath(state), str(cache()))


def roots() -> list[str]:
    """The given folders, as this process knows them."""
    found: list[str] = _open["roots"]
    return found


def _end_with_parent() -> None:
    import multiprocessing
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    if parent is not None:

        def end() -> None:
            wait([parent.sentinel])
            os._exit(0)

        threading.Thread(target=end, daemon=True).start()


def _warm() -> None:
    """Load what every diagnosis needs."""
    import klinic.compare.two_runs
    import klinic.render._words
    import klinic.watch.alert  # noqa: F401
    from klinic.failures import cards

    cards()


def examine(
    at: str,
    logs: Sequence[tuple[str, str]],
    folder: bool,
    stamp: str,
    grown_at: float,
    quiet: bool,
    fresh: bool,
) -> list[dict[str, Any]]:
    """Read a place, judge its runs and keep what is said of them; the rows. fresh: it grows now, whatever its age."""
    rows: list[tuple[dict[str, Any], bytes | None]] = []
    try:
        runs = read(at, logs, folder)
    except KlinicError as trouble:
        rows.append((unreadable(at, trouble, grown_at), None))
    except Exception as trouble:  # a bug in a reader: the other runs are shown all the same
        told = KlinicError(f"a bug in klinic: {type(trouble).__name__}: {trouble}", at)
        rows.append((unreadable(at, told, grown_at), None))
    else:
        for run in runs:
            rows.append(_judged(at, run, grown_at, quiet, fresh))
    _open["store"].keep(at, stamp, rows)
    return [row for row, _ in rows]


def read(at: str, logs: Sequence[tuple[str, str]], folder: bool) -> list[Run]:
    """The runs of a place, by the readers of ``klinic diagnose``."""
    from klinic.read import read_all, read_folder
    from klinic.rollouts import beside

    options: dict[str, Any] = {"mapping": _open["mapping"], "trainer": _open["trainer"]}
    if not folder:
        return read_all(at, **options)
    # Looked at again: a link may have come since the search, and DuckDB's own files are seen by nobody.
    inside = [Log(Path(path), group) for path, group in logs if within(path, roots())]
    return beside(read_folder(Path(at), inside, **options), at)


def one(place: tuple[str, Sequence[tuple[str, str]], bool], run: str) -> Run | None:
    """One run of a place by its id, None where it is gone."""
    return next((r for r in read(*place) if run_id(place[0], r.name) == run), None)


def key_of(at: str, name: str) -> str:
    """The run's key in the state of ``klinic watch``."""
    return f"{Path(at).resolve()}:{name}"


def run_id(at: str, name: str) -> str:
    """A run's short name in addresses; the same at every start."""
    return hashlib.sha256(key_of(at, name).encode(errors="surrogateescape")).hexdigest()[:12]


def _judged(
    at: str, run: Run, grown_at: float, quiet: bool, fresh: bool
) -> tuple[dict[str, Any], bytes]:
    import time

    from klinic.diagnose import judge
    from klinic.serve.document import document
    from klinic.watch import edetector
    from klinic.watch.alert import alert
    from klinic.watch.monitor import Monitor

    answer = judge(run, skip=_open["skip"])
    key = key_of(at, run.name)
    monitor = Monitor(_open["memory"].state(key), skip=_open["skip"])
    first = monitor.state.diagnosed is None
    changes = monitor.look(run, settled=quiet, answer=answer)
    silent = first and not fresh and time.time() - grown_at > OLD
    alerts = [] if silent else [alert(c, answer, key, edetector.MEAN_STEPS, "en") for c in changes]
    _open["memory"].remember(key, monitor.state, alerts, [])
    return row_of(at, answer, grown_at), document(answer)


def row_of(at: str, answer: Diagnosis, grown_at: float) -> dict[str, Any]:
    """What the list of runs shows of a run."""
    from klinic.render import _words as words

    run, main = answer.run, answer.main
    onset = main.onset.step if main and main.onset else None
    action = answer.first_action
    return {
        "id": run_id(at, run.name),
        "key": key_of(at, run.name),
        "place": at,
        "name": run.name,
        "trainer": run.trainer.title,
        "status": answer.status,
        "failure": main.failure if main else None,
        "severity": main.severity if main else None,
        "confidence": main.confidence if main else None,
        "onset": onset,
        "first": run.first,
        "last": run.last,
        "logged": run.logged,
        "changed": grown_at,
        "action": None
        if action is None
        else {lang: words.change(action, lang) for lang in LANGUAGES},
        "spark": spark_of(answer, onset),
        "trouble": None,
    }


def unreadable(at: str, trouble: KlinicError, grown_at: float) -> dict[str, Any]:
    """The row of a log that cannot be read."""
    name = Path(at).name
    blank = dict.fromkeys(
        ("failure", "severity", "confidence", "onset", "first", "last", "logged", "action", "spark")
    )
    return {
        **blank,
        "id": run_id(at, name),
        "key": key_of(at, name),
        "place": at,
        "name": name,
        "trainer": "",
        "status": "unreadable",
        "changed": grown_at,
        "trouble": [trouble.what, trouble.hint],
    }


def spark_of(answer: Diagnosis, onset: int | None) -> dict[str, Any] | None:
    """The curve that moved first, else the reward, as a line in a box of WIDE x HIGH; mark: where the onset lies in it."""
    from klinic.vitals import VITALS, players

    run = answer.run
    roles = [answer.first_mover, *VITALS] if answer.status != "healthy" else list(VITALS)
    for role in filter(None, roles):
        names = players(role, run.curves) if role in _roles() else []
        if names and len(run.curves[names[0]].values) > 1:
            curve = run.curves[names[0]]
            steps, values = curve.steps.tolist(), curve.values.tolist()
            span = max(1, steps[-1] - steps[0])
            mark = None if onset is None else (onset - steps[0]) / span * WIDE
            inside = mark is not None and 0 <= mark <= WIDE
            return {
                "role": role,
                "line": line(steps, values),
                "mark": round(mark or 0, 1) if inside else None,
            }
    return None


def _roles() -> Any:
    from klinic.vitals import ROLES

    return ROLES


def line(steps: Sequence[int], values: Sequence[float]) -> str:
    """Points of a polyline: medians of equal shares of the points, lowest to highest over the box's height."""
    count = min(BINS, len(values))
    points = []
    for i in range(count):
        low, high = i * len(values) // count, (i + 1) * len(values) // count
        good = sorted(v for v in values[low:high] if isfinite(v))
        if good:
            points.append((steps[(low + high - 1) // 2], good[len(good) // 2]))
    if not points:
        return ""
    least, most = min(v for _, v in points), max(v for _, v in points)
    span, rise = max(1, steps[-1] - steps[0]), most - least
    return " ".join(
        f"{(s - steps[0]) / span * WIDE:.1f},{HIGH - 2 - (HIGH - 4) * ((v - least) / rise if rise else 0.5):.1f}"
        for s, v in points
    )


def stamp_text(stamp: object, options: object) -> str:
    """A stamp as it is kept: what was read, by which klinic, and how."""
    from klinic.serve.store import VERSION

    return hashlib.sha256(json.dumps([VERSION, options, stamp], default=str).encode()).hexdigest()
