"""What each trainer calls things: one TOML a trainer, found by walking this folder.

``generic.toml`` explains every field and holds the names of hand-written loops; it is asked last.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from klinic.compiled import compiled, parsed, plugins

GENERIC = "generic"


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a key means something else: which keys are logged beside it, which are not, what knobs are set to.

    keys: one of them is logged. without: none of them is. knobs: every one is stated (or is by default) as one of the
    values. The other fields replace the rule's own.
    """

    keys: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    knobs: dict[str, tuple[Any, ...]] = {}
    name: str | None = None
    unit: str | None = None
    definition: str | None = None
    conversion: str | None = None
    comparable: bool | None = None

    def holds(self, logged: Container[str], value_of: Callable[[str], Any]) -> bool:
        """Whether a run is such a case. value_of: a knob's value as stated or by default, None if unknown."""
        return (
            (not self.keys or any(key in logged for key in self.keys))
            and not any(key in logged for key in self.without)
            and all(
                str(value_of(knob)).lower() in {str(value).lower() for value in values}
                for knob, values in self.knobs.items()
            )
        )


class MetricRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one key of the log is to be understood."""

    key: str
    name: str
    unit: str = "1"
    definition: str = ""
    conversion: str | None = None
    zero: str | None = None
    zero_en: str = ""
    zero_zh: str = ""
    comparable: bool = True
    if_share: bool = False
    cases: tuple[Case, ...] = ()
    parts: bool = False
    source: str = ""
    en: str = ""
    zh: str = ""

    def under(self, logged: Container[str], value_of: Callable[[str], Any]) -> MetricRule:
        """The rule as it holds for one run: the first of its cases that is the run's, filled in."""
        for case in self.cases:
            if case.holds(logged, value_of):
                other = {
                    field: value
                    for field in ("name", "unit", "definition", "conversion", "comparable")
                    if (value := getattr(case, field)) is not None
                }
                return msgspec.structs.replace(self, **other)
        return self


class Knob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One setting of a trainer: its flag, and the names under which a configuration holds it.

    values: what this trainer writes for a value in klinic's words (``dr_grpo``, ``true``). already: its own values that
    do what klinic would ask for.
    """

    flag: str
    config: tuple[str, ...] = ()
    default: Any = None
    style: str = ""
    values: dict[str, Any] = {}
    already: tuple[Any, ...] = ()
    note_en: str = ""
    note_zh: str = ""
    source: str = ""


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that a trainer, or some of its versions, logs wrongly or under a name that misleads.

    key: of the log, ``*`` for any text; several with a blank between. since, until: the first and the last version ("0.7";
    none: from the beginning, to this day). keys, without, knobs: what else the log of such a run shows, as in a case.
    effect: what klinic does about it: converted, left-out, not-comparable, or noted.
    """

    key: str
    en: str
    zh: str
    since: str = ""
    until: str = ""
    effect: str = "noted"
    keys: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    knobs: dict[str, tuple[Any, ...]] = {}
    source: str = ""


class LogHint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to make the trainer log a role that is missing; ``how`` is a flag, the others a clause where none exists."""

    how: str = ""
    how_en: str = ""
    how_zh: str = ""


class Without(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a trainer has no such knob."""

    en: str
    zh: str
    source: str = ""


class CheckpointRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a saved policy looks on disk."""

    pattern: str = ""
    parts: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    latest: str = ""


class Recognise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keys and words that give a trainer away, and patterns whose group 1 is its version."""

    keys: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    version: tuple[str, ...] = ()


class Table(msgspec.Struct, forbid_unknown_fields=True, dict=True):
    """Everything klinic knows of one trainer."""

    title: str
    base: str = ""
    recognise: Recognise = Recognise()
    strip: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    style: str = "cli"
    metric: tuple[MetricRule, ...] = ()
    knob: dict[str, Knob] = {}
    without: dict[str, Without] = {}
    log: dict[str, LogHint] = {}
    checkpoint: CheckpointRule = CheckpointRule()
    bugs: tuple[Bug, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        self._found: dict[str, tuple[MetricRule, str] | None] = {}
        self._exact: dict[str, MetricRule] = {}
        self._wild: list[tuple[str, str, MetricRule]] = []

    def prepare(self, name: str) -> Table:
        """Index the rules once."""
        self.name = name
        for rule in self.metric:
            before, star, after = self._fold(rule.key).partition("*")
            if star:
                self._wild.append((before, after, rule))
            else:
                self._exact.setdefault(before, rule)
        return self

    def rule(self, key: str) -> tuple[MetricRule, str] | None:
        """The rule for a key and what its ``*`` matched; None where the table does not know the key."""
        if key not in self._found:
            self._found[key] = self._look_up(key)
        return self._found[key]

    def _look_up(self, key: str) -> tuple[MetricRule, str] | None:
        folded = self._fold(key)
        for prefix in self.strip:
            if folded.startswith(prefix) and len(folded) > len(prefix):
                folded = folded[len(prefix) :]
                break
        if folded in self._exact:
            return self._exact[folded], ""
        for before, after, rule in self._wild:
            if (
                len(folded) > len(before) + len(after)
                and folded.startswith(before)
                and folded.endswith(after)
            ):
                return rule, folded[len(before) : len(folded) - len(after) or None]
        return None

    def bare(self, keys: Iterable[str]) -> set[str]:
        """Keys of a log as they are and without the prefixes that trackers put before them."""
        have = set(keys)
        return have | {key.removeprefix(prefix) for key in have for prefix in self.strip}

    def _fold(self, key: str) -> str:
        return (
            key.lower().replace("-", "_").replace(" ", "_").replace(".", "_")
            if self.name == GENERIC or self.title.startswith("your own")
            else key
        )


@cache
def tables() -> dict[str, Table]:
    """Every trainer's table by name, ``generic`` last. Raises msgspec.ValidationError for a malformed one."""
    here = Path(__file__).parent
    own = sorted(here.glob("*.toml"))
    raw = compiled("tables", own, lambda: {path.stem: parsed(path) for path in own})
    for point in plugins("klinic.trainers"):
        from importlib.resources import files

        raw[point.name] = parsed(files(point.load()).joinpath(f"{point.name}.toml"))
    raw = {name: _on_base(table, raw) for name, table in raw.items()}
    ordered = sorted(raw.items(), key=lambda item: (item[0] == GENERIC, item[0]))
    return {name: msgspec.convert(table, Table).prepare(name) for name, table in ordered}


def _on_base(table: dict[str, Any], raw: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A fork's table: its own entries before those of the trainer it was made from."""
    base = raw.get(table.get("base", ""))
    if base is None:
        return table
    merged = {**{key: value for key, value in base.items() if key != "recognise"}, **table}
    merged["metric"] = [*table.get("metric", ()), *base.get("metric", ())]
    # A fork counts its versions anew.
    of_base = [b for b in base.get("bugs", ()) if not b.get("since") and not b.get("until")]
    merged["bugs"] = [*table.get("bugs", ()), *of_base]
    for part in ("knob", "log", "without"):
        merged[part] = {**base.get(part, {}), **table.get(part, {})}
    for knob in table.get("without", ()):  # what the base has and the fork has not
        merged["knob"].pop(knob, None)
    return merged


def known(key: str) -> bool:
    """Whether any trainer's table knows the key."""
    return any(table.rule(key) is not None for table in tables().values())


@cache
def in_parts(key: str) -> bool:
    """Whether a list of numbers under the key is one metric in parts, for any trainer's table."""
    found = (table.rule(f"{key}/0") for table in tables().values())
    return any(rule is not None and rule[0].parts for rule in found)
