"""Where trainers leave their rollouts."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

EVAL = re.compile(r"(^|[/_.\-])(eval|evals|evaluation|val|validation|test|dev)([/_.\-]|\d|$)", re.I)
STEP = (
    re.compile(
        r"(?:^|[/_.\-])(?:global_?step|training_?step|train_?step|steps?|iter|iteration|rollout|batch|epoch)s?[_\-]?0*(\d+)",
        re.I,
    ),
    re.compile(r"(?:^|/)(?:[A-Za-z]+[_\-])?0*(\d+)\.[a-z]+$", re.I),
)


@dataclass(frozen=True, slots=True)
class Place:
    """path: matches where they lie. keys: what a row must have, since others name their files alike. parts: see columns."""

    trainer: str
    layout: str
    path: re.Pattern[str]
    eval: bool = False
    parts: str = "named"
    keys: tuple[str, ...] = ()


@cache
def places() -> tuple[Place, ...]:
    """The rows of places.toml."""
    told = tomllib.loads((files("klinic.rollouts") / "places.toml").read_text("utf-8"))
    return tuple(
        Place(**{**row, "path": re.compile(row["path"]), "keys": tuple(row.get("keys", ()))})
        for row in told["place"]
    )


@cache
def parts_of(trainer: str) -> str:
    """Which numbers beside the reward are parts of it: "named" or "all"."""
    return next((p.parts for p in places() if p.trainer == trainer and p.parts != "named"), "named")


def step_in(name: str) -> int | None:
    """The step that a path says: step_12/, completions_00012.parquet, 12.jsonl; None where it says none."""
    for pattern in STEP:
        if found := pattern.findall(name):
            return int(found[-1])
    return None


def split_in(name: str) -> str:
    """Whether a path says that these are samples of the evaluation: "eval", else "train"."""
    return "eval" if EVAL.search(name) else "train"
