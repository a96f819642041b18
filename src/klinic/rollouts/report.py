"""A run with its samples, as the verb that shows samples diagnoses it, and the samples as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage, UnreadableInput
from klinic.read import read_all
from klinic.rollouts.join import joined
from klinic.run import Run, Samples, Trainer

LEFT_OUT = ("pairs", "words", "traits", "best")


def run_of(path: Path, steps: Mapping[int, Mapping[str, Any]], dumps: tuple[str, ...]) -> Run:
    """The run at a path, with its samples; a run of samples alone where there is no log beside them."""
    runs = []
    if not path.is_file():  # a file of samples is no log as well
        with suppress(UnreadableInput):
            runs = read_all(path)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs[:3])
        raise BadUsage(f"{len(runs)} runs lie here", str(path), f"name one of them: {names} ...")
    if runs:
        run = runs[0]
    else:
        run = Run(path.name, str(path), Trainer("generic", "samples", ""), {})
    return joined(run, steps, dumps)


def as_plain(samples: Samples, steps: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers only: no prompt and no completion."""
    return {
        **asdict(samples),
        "by_step": {
            str(step): {name: value for name, value in said.items() if name not in LEFT_OUT}
            for step, said in sorted(steps.items())
        },
    }
