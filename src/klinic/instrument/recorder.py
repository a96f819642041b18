"""One JSON line a step, which ``klinic diagnose`` reads as it stands; beside it the configuration and some rollouts.

    with Recorder("runs/07", config=args) as recorder:
        recorder.define("judge/style", "mean score of the style judge", unit="score")
        for n in range(steps):
            ...
            recorder.log(n, step, seconds=t)

metrics.jsonl     one row a step; a row ``{"definitions": ...}`` says what a name of one's own means
run_config.json   the configuration
rollouts.jsonl    the rollouts handed to ``samples``
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from klinic.errors import BadUsage
from klinic.files import write_whole
from klinic.instrument.lines import Lines, rows_with
from klinic.instrument.mirrors import Mirror, mirror_named
from klinic.instrument.samples import chosen
from klinic.instrument.slices import sliced
from klinic.instrument.step import Step

DEFINITIONS = "definitions"
SECONDS, TOKENS = "time/step_s", "tokens/seen"
VERSION, LAG = "rollout/version", "staleness/versions_mean"


class Recorder:
    """Writes a run's metrics. path: the run's folder, or a file that ends in .jsonl; made where it does not exist.

    An existing run goes on. config: the run's settings, as a mapping. rotate: bytes from which a file is followed by the
    next one (metrics-0001.jsonl, metrics-0002.jsonl, ...), which klinic reads as one run. mirror: "tensorboard" or "wandb".

    One process writes: under torch.distributed make it on rank 0, after ``Step.all_reduce``. Raises UnreadableInput where
    the folder cannot be written, BadUsage for what it cannot understand; a write that fails later (the disk is full) is
    said once on standard error and counted in ``lost``, for a log that cannot be written is no reason to lose a run.
    """

    def __init__(
        self,
        path: str | Path,
        config: Mapping[str, Any] | None = None,
        *,
        rotate: int | None = None,
        mirror: str | None = None,
    ) -> None:
        path = Path(path)
        if path.suffix == ".jsonl":
            self.folder, self._stem = path.parent, path.stem
        else:
            self.folder, self._stem = path, "metrics"
        self._rotate, self.lost, self._told = rotate, 0, False
        parts = self._parts()
        plain = self.folder / f"{self._stem}.jsonl"
        if rotate is not None and plain.exists():
            if parts:
                raise BadUsage(
                    "beside it lie numbered files", str(plain), "move one of the two away"
                )
            os.replace(plain, self._numbered(1))
            parts = {1: self._numbered(1)}
        self._number = max(parts, default=0 if rotate is None else 1)
        self._lines = Lines(self._numbered(self._number) if self._number else plain)
        self._defined: dict[str, dict[str, str]] = {}
        for part in [parts[number] for number in sorted(parts)] or [plain]:
            for row in rows_with(part, DEFINITIONS):
                self._defined.update(row[DEFINITIONS])
        self._rollouts: Lines | None = None
        if config is not None:
            text = json.dumps(dict(config), indent=1, ensure_ascii=False, default=str) + "\n"
            write_whole(self.folder / "run_config.json", text.encode())
        self._mirror: Mirror | None = mirror_named(mirror, self.folder, config) if mirror else None

    def define(self, name: str, definition: str, unit: str = "1") -> None:
        """Say what a name of your own means, e.g. "mean over responses", unit "nats/token". Written to the log, once.

        A name klinic knows keeps klinic's meaning. Raises BadUsage where it was defined otherwise before, also by the run
        that this one goes on with.
        """
        new = {"definition": definition, "unit": unit}
        before = self._defined.get(name)
        if before == new:
            return
        if before is not None:
            raise BadUsage(
                f"{name!r} is already defined as {before['definition']!r} in {before['unit']}",
                str(self._lines.path),
                "give what means something else a name of its own",
            )
        self._defined[name] = new
        self._write(self._lines, {DEFINITIONS: {name: new}})

    def log(
        self,
        step: int,
        values: Step | Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
        tokens: float | None = None,
        policy_version: float | None = None,
        lag: float | None = None,
        slices: Mapping[str, Step | Mapping[str, Any]] | None = None,
    ) -> None:
        """Write one row. values: a Step, or numbers by name (also tensors of one element); None is left out, NaN is kept.

        seconds: of this step. tokens: seen so far. policy_version: of the weights that sampled. lag: updates that they are
        behind the trainer's. slices: the values of a part, by ``task=gsm8k``, ``len=0-255`` or any ``WORD=NAME``. Of a Step,
        what nothing was counted for is left out. Raises BadUsage for a value that is no number.
        """
        row = _numbers(values)
        for which, part in (slices or {}).items():
            row |= sliced(which, _numbers(part))
        for name, value in (
            (SECONDS, seconds),
            (TOKENS, tokens),
            (VERSION, policy_version),
            (LAG, lag),
        ):
            if value is not None:
                row[name] = _number(name, value)
        if self._rotate is not None and self._lines.size >= self._rotate:
            self._next_file()
        self._write(self._lines, {"step": int(step), **row})
        if self._mirror is not None:
            try:
                self._mirror.log(int(step), row)
            except Exception as trouble:  # a tracker's own failure is no reason to lose a run
                self._mirror = None
                self._complain(f"the mirror failed and is left out from now on: {trouble}", "")

    def samples(
        self,
        step: int,
        rows: Sequence[Mapping[str, Any]],
        top: int = 4,
        bottom: int = 4,
        random: int = 4,
    ) -> None:
        """Keep some rollouts of a step in rollouts.jsonl: the best, the worst, and some drawn from the rest.

        rows: one mapping a rollout with completion and reward, and of prompt, prompt_id, group, reward_parts, advantage,
        length (tokens), truncated and policy_version what there is. Raises BadUsage for other columns.
        """
        kept = chosen(int(step), rows, top, bottom, random)
        if self._rollouts is None:
            self._rollouts = Lines(self.folder / "rollouts.jsonl")
        for row in kept:
            self._write(self._rollouts, row)

    def close(self) -> None:
        """Close the files and the mirror. What was logged is on its way to the disk whether or not this is called."""
        for lines in (self._lines, self._rollouts):
            if lines is not None:
                lines.close()
        if self._mirror is not None:
            self._mirror.close()
            self._mirror = None

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _numbered(self, number: int) -> Path:
        return self.folder / f"{self._stem}-{number:04}.jsonl"

    def _parts(self) -> dict[int, Path]:
        """The numbered files that are there."""
        form = re.compile(re.escape(self._stem) + r"-(\d{4,})\.jsonl")
        return {
            int(found[1]): path
            for path in self.folder.glob(f"{self._stem}-*.jsonl")
            if (found := form.fullmatch(path.name))
        }

    def _next_file(self) -> None:
        self._lines.close()
        self._number += 1
        self._lines = Lines(self._numbered(self._number))
        if self._defined:  # each file can be read alone
            self._write(self._lines, {DEFINITIONS: self._defined})

    def _write(self, lines: Lines, row: Mapping[str, Any]) -> None:
        try:
            lines.write(row)
        except OSError as trouble:
            self.lost += 1
            self._complain(f"cannot be written ({trouble.strerror})", str(lines.path))

    def _complain(self, what: str, where: str) -> None:
        from klinic.said import complaint

        if not self._told:
            lang = os.environ.get("KLINIC_LANG", "en")
            hint = "training goes on; what is lost is counted in Recorder.lost"
            print(complaint(what, where, hint, lang), file=sys.stderr)
        self._told = True


def _numbers(values: Step | Mapping[str, Any] | None) -> dict[str, float]:
    if isinstance(values, Step):
        return {
            name: value
            for name, value in values.results().items()
            if value == value or _counted(values, name)
        }
    return {
        str(name): _number(name, value)
        for name, value in (values or {}).items()
        if value is not None
    }


def _counted(step: Step, name: str) -> bool:
    """Whether a NaN is one that was counted in: a value was NaN, not missing."""
    return name in step.tallies and step.tallies[name].count > 0


def _number(name: Any, value: Any) -> float:
    try:
        return value if type(value) in (float, int) else float(value)
    except (TypeError, ValueError, RuntimeError):
        raise BadUsage(
            f"the value of {name!r} is no number",
            "Recorder.log",
            "texts belong into config or samples",
        ) from None
