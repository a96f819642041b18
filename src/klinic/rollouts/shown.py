"""The few samples that a report shows of a run: those of its forms, and the best paid around its onset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from klinic.run import Run
from klinic.text import in_every_language, say_in

EACH = 3  # samples of a form, and of the steps before and after the onset (our choice)


def shown(run: Run, onset: int | None) -> list[dict[str, Any]]:
    """``{"step", "prompt", "completion", "reward", "why"}`` each; empty where the run has no samples.

    The samples are taken into the cache first, as ``klinic rollouts`` does. onset: the step since when something is wrong.
    """
    if run.samples is None and not run.holds.get("sample files"):
        return []
    from klinic.rollouts import query
    from klinic.rollouts.forms import forms
    from klinic.rollouts.join import written_once
    from klinic.rollouts.store import Store

    place = Path(run.path)
    store = Store(place if place.is_dir() else place.parent)
    store.take()
    if not store.steps:
        return []
    found: dict[int, dict[str, Any]] = {}
    # Of the kept samples, by their own numbers: those of a diagnosis may be numbered otherwise.
    for form in forms(written_once(store.steps)):
        for name in form.examples[:EACH]:
            number = int(name.rsplit("/", 1)[1])
            for row in query.samples(store, '"row" = ?', [number], "row", 1):
                found.setdefault(row["row"], _told(row, f"shown_{form.name}"))
    steps = sorted(store.steps)
    edge = steps[-1] if onset is None else onset
    for before in (True, False):
        near = [s for s in steps if (s < edge) is before]
        if near:
            step = near[-1] if before else near[0]
            for row in query.top(store, EACH, "reward", step):
                found.setdefault(
                    row["row"], _told(row, "shown_before" if before else "shown_after")
                )
    return sorted(found.values(), key=lambda s: s["step"])


def _told(row: dict[str, Any], why: str) -> dict[str, Any]:
    reward = row["reward"]
    return {
        "step": row["step"],
        "prompt": row["prompt"],
        "completion": row["completion"],
        "reward": None if reward is None or reward != reward else reward,
        "why": in_every_language(lambda lang: say_in("rollouts", why, lang)),
    }
