"""What the configuration of two runs says differently: the first thing to know of any comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from klinic.configuration import configuration_beside, flag_value
from klinic.folders import CHECKPOINT_LIKE
from klinic.run import Run
from klinic.trainers import tables

# How long, how often saved, where to and from what a run started: no treatment of the policy. A seed
# changes the samples, which is what a resample is meant to do.
BOOKKEEPING = {
    "resume",
    "max_steps",
    "save_interval",
    "eval_interval",
    "logging_interval",
    "log_rollouts",
}
UNTOLD = re.compile(
    r"(^|[._])(re_?seed|(data_?|rollout_?)?seed|resum\w*|from_checkpoint|checkpoint\w*|ckpt\w*|run_?(name|id)|name|"
    r"(output|out|logging|log|save|work)_?(dir|path|folder)?|dir|max_steps|(total|num)?_?(training)?_?steps|"
    r"(save|eval|logging|log|test)_(every|steps|freq|interval|total_limit|strategy)|report_to|host\w*|port|pid|"
    r"date|time\w*|started\w*|version|disable_tqdm|first|last|begin|end|start(_step)?)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Changed:
    """One setting of two runs. knob: our word, None where klinic has none; name: the trainer's flag or key.

    a, b: the values; None where a run does not state one.
    """

    knob: str | None
    name: str
    a: Any
    b: Any


def differences(a: Run, b: Run) -> tuple[Changed, ...] | None:
    """Every setting with two values, knobs first; None where one of the runs states no configuration at all."""
    leaves_a, leaves_b = _leaves(a), _leaves(b)
    if not (says(a) or leaves_a) or not (says(b) or leaves_b):
        return None
    found: list[Changed] = []
    told: set[str] = set()
    for knob in sorted({*a.config, *b.config}):
        ours, theirs = a.config.get(knob), b.config.get(knob)
        # Two trainers state different things; there only what both state can differ.
        if knob in BOOKKEEPING or (
            a.trainer.name != b.trainer.name and (ours is None or theirs is None)
        ):
            continue
        one, other = flag_value(ours), flag_value(theirs)
        flag = next(s.flag for s in (theirs, ours) if s is not None)
        if not same(one, other) and flag not in told:
            told.add(flag)
            found.append(Changed(knob, flag, one, other))
    if a.trainer.name == b.trainer.name:
        found += _others(leaves_a, leaves_b, a)
    return tuple(found)


def says(run: Run) -> bool:
    """Whether a run states any setting of its configuration."""
    return any(stated(setting.at) for setting in run.config.values())


def same(one: Any, other: Any) -> bool:
    """Whether two values of a setting are the same: 1, 1.0 and "1" are."""
    if one == other:
        return True
    try:
        return abs(float(one) - float(other)) <= 1e-12 * max(abs(float(one)), abs(float(other)))
    except (TypeError, ValueError):
        return str(one).lower() == str(other).lower()


def home(run: Run) -> Path:
    """The folder of a run; the log of some trainers lies in its newest checkpoint."""
    place = Path(run.path).resolve().parent
    return place.parent if CHECKPOINT_LIKE.match(place.name) else place


def _leaves(run: Run) -> dict[str, Any]:
    if run.path == "-" or not run.sources:
        return {}
    beside = configuration_beside(home(run))
    return {
        key: value
        for key, (value, at) in beside.items()
        if stated(at) and not isinstance(value, list | dict) and not UNTOLD.search(key)
    }


def stated(at: str) -> bool:
    """Whether a file states settings: the state of a trainer is named like a configuration and holds its history."""
    return Path(at).name != "trainer_state.json"


def _others(a: Mapping[str, Any], b: Mapping[str, Any], run: Run) -> list[Changed]:
    """Settings that no knob of the trainer's table stands for, such as the reward's own code."""
    rules = tables()[run.trainer.name].knob.values()
    known = {name for rule in rules for name in (*rule.config, rule.flag.lstrip("-"))}
    return [
        Changed(None, key, a.get(key), b.get(key))
        for key in sorted({*a, *b})
        if key not in known
        and key.rpartition(".")[2] not in known
        and not same(a.get(key), b.get(key))
    ]
