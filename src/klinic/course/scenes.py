"""From a spec to a log: the drawn logs of round one, and the compact real ones of round two."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from klinic.errors import BadUsage, UnreadableInput

HERE = Path(__file__).parent
NOISE = 0.02  # relative step-to-step noise of a drawn curve, as in the failures' own pages
CARRY = 0.3  # part of one step's noise that the next one keeps
QUIET = {"ratio": 0.001}  # a mean over thousands of tokens hardly moves
KEYS = ("reward", "acc", "entropy", "kl", "adv_std", "clip", "ratio", "len", "trunc", "gnorm")
FOLLOWS = "zero_std"  # the share of groups without spread, which adv_std implies: 1 - adv_std^2
SHARES = ("acc", "clip", "trunc")
ROUNDS = (1, 2)


@dataclass(frozen=True, slots=True)
class Log:
    """One log of an exercise.

    keys: the log's own names, without "step". rows: one mapping a step; a key that was not logged at that step is
    missing. answer, also: the right slug, and looser ones that count. tells: roles of the curves that decide.
    mind: the curve to mind in a healthy log. drawn: made from a spec, not measured.
    """

    name: str
    keys: tuple[str, ...]
    rows: tuple[dict[str, float], ...]
    answer: str
    also: tuple[str, ...] = ()
    tells: tuple[str, ...] = ()
    mind: str | None = None
    samples: tuple[str, ...] = ()
    drawn: bool = True
    config: tuple[tuple[str, Any], ...] = ()
    source: str = ""

    @property
    def steps(self) -> list[int]:
        """The steps that were logged."""
        return [int(row["step"]) for row in self.rows]

    def column(self, key: str) -> list[float]:
        """The values of one key, in order, where it was logged."""
        return [row[key] for row in self.rows if key in row]


@cache
def specs() -> dict[str, Any]:
    """``scenes.toml``, parsed."""
    import tomllib

    return tomllib.loads((HERE / "scenes.toml").read_text(encoding="utf-8"))


@cache
def log(name: str, turn: int) -> Log:
    """A log of round ``turn``. Raises BadUsage where that round has none of the name."""
    real = specs().get("real", {}).get(name)
    if turn == 2 and real is not None:
        return _real(name, real)
    spec = specs()["log"].get(name)
    if spec is None:
        raise BadUsage(f"no log {name!r}", "klinic course")
    return _drawn(name, spec)


def _drawn(name: str, spec: dict[str, Any]) -> Log:
    """Draw the curves; noise depends on the name alone, so that a log is the same at every look."""
    import numpy as np

    last = max(int(knots[-1][0]) for knots in spec["curves"].values())
    steps = np.arange(last + 1)
    columns: dict[str, list[float]] = {}
    for key in KEYS:
        at, level = (np.array(part, dtype=float) for part in zip(*spec["curves"][key], strict=True))
        if key in spec.get("log", ()):
            values = np.exp(np.interp(steps, at, np.log(level)))
        else:
            values = np.interp(steps, at, level)
        own = spec.get("noise", {}).get(key, QUIET.get(key, NOISE))
        rng = np.random.default_rng(zlib.crc32(f"{name}/{key}".encode()))
        white = rng.normal(size=len(steps))
        noise = np.zeros(len(steps))
        for i in range(1, len(steps) - 1):  # none at either end: the text quotes those numbers
            noise[i] = CARRY * noise[i - 1] + (1 - CARRY**2) ** 0.5 * white[i]
        values = values * (1 + own * noise)
        if key in SHARES:
            values = np.clip(values, 0, 1)
        columns[key] = [float(v) for v in values]
    batch = spec.get("batch")
    rows = []
    for i in range(len(steps)):
        row = {"step": float(i)} | {key: columns[key][i] for key in KEYS}
        row |= {"valid": float(batch)} if batch else {}
        rows.append(row | {FOLLOWS: max(0.0, 1 - row["adv_std"] ** 2)})
    return Log(
        name,
        (*KEYS, *(("valid",) if batch else ()), FOLLOWS),
        tuple(rows),
        spec["answer"],
        tuple(spec.get("also", ())),
        tuple(spec["tells"]),
        spec.get("mind"),
        tuple(spec.get("samples", ())),
    )


def _real(name: str, spec: dict[str, Any]) -> Log:
    place = HERE / "runs" / f"{spec['run']}.json"
    try:
        kept = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError) as trouble:
        raise UnreadableInput(
            f"the run cannot be read ({trouble})", str(place), "reinstall klinic"
        ) from None
    keys = kept["keys"]
    rows = tuple(
        {key: value for key, value in zip(keys, row, strict=True) if value is not None}
        for row in kept["rows"]
    )
    return Log(
        name,
        tuple(key for key in keys if key != "step"),
        rows,
        spec["answer"],
        tuple(spec.get("also", ())),
        tuple(spec["tells"]),
        spec.get("mind"),
        tuple(kept.get("samples", ())),
        False,
        tuple(kept["config"].items()),
        kept["made_by"],
    )


def line(row: dict[str, float]) -> str:
    """One step as a training script prints it."""
    parts = [
        f"reward={row['reward']:.3f}",
        f"acc={100 * row['acc']:.1f}%",
        f"entropy={row['entropy']:.3f}",
        f"kl={row['kl']:.4f}",
        f"adv_std={row['adv_std']:.3f}",
        f"clip={row['clip']:.3f}",
        f"ratio={row['ratio']:.4f}",
        f"len={row['len']:.0f}",
        f"trunc={row['trunc']:.3f}",
        f"gnorm={row['gnorm']:.2f}",
    ]
    if "valid" in row:
        parts.append(f"valid={row['valid']:.0f}")
    parts.append(f"zero_std={row[FOLLOWS]:.3f}")
    return f"[{row['step']:4.0f}] " + " ".join(parts)


def save(one: Log, folder: Path) -> Path:
    """Write a log as its trainer would: console lines if drawn, a run's folder if real. Returns what to diagnose."""
    if one.drawn:
        place = folder / f"{one.name}.log"
        place.write_text("\n".join(map(line, one.rows)) + "\n", encoding="utf-8")
        return place
    place = folder / one.name
    place.mkdir(exist_ok=True)
    text = "\n".join(json.dumps(row) for row in one.rows) + "\n"
    (place / "metrics.jsonl").write_text(text, encoding="utf-8")
    (place / "run_config.json").write_text(json.dumps(dict(one.config)), encoding="utf-8")
    return place
