"""From a trainer's keys to canonical metrics: unit, sign and share put right, zeros that mean "not computed" left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klinic.median import median
from klinic.run import Curve, Metric, Setting
from klinic.sources.rows import Column
from klinic.trainers import GENERIC, MetricRule, Table, tables
from klinic.vitals import ROLES, role_of

# TRL's clip_ratio is 0 on the first pass over a fresh batch (grpo_trainer.py:3275), so with two passes half the
# rows are 0: left in, they would halve the clip fraction.
FIRST_PASS_SHARE = 0.3
FIRST_PASS_LEVEL = 0.02


@dataclass(slots=True)
class Converted:
    """Curves by canonical name; keys nobody understood; canonical names that are absent, and why (en, zh)."""

    curves: dict[str, Curve] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    absent: dict[str, tuple[str, str]] = field(default_factory=dict)


def convert(
    columns: Mapping[str, Column],
    table: Table,
    config: Mapping[str, Setting],
    mapping: Mapping[str, str],
) -> Converted:
    """Name every column. mapping: log key -> role or canonical name, from ``--map``; it wins over the tables."""
    done = Converted()
    generic = tables()[GENERIC]
    for key, column in columns.items():
        if key in mapping:
            name, rule, part = _mapped(mapping[key]), None, ""
            metric = Metric(name, "as mapped by --map", _unit(name), key)
        else:
            found = table.rule(key) or (generic.rule(key) if table is not generic else None)
            if found is None:
                done.unread.append(key)
                continue
            rule, part = found
            name = rule.name.replace("{}", part)
            metric = Metric(name, rule.definition, rule.unit, key)
        steps, values = _points(column)
        if rule is not None:
            steps, values, metric = _apply(rule, steps, values, metric, config)
            if (
                rule.zero
                and len(values)
                and not np.any(values[np.isfinite(values)])
                and np.isfinite(values).any()
                and not _zero_is_real(rule, config)
            ):
                done.absent[name] = (rule.zero_en, rule.zero_zh)
                continue
            if rule.zero == "by-construction":
                steps, values, metric = _without_first_passes(steps, values, metric)
            if not rule.comparable:
                metric = Metric(
                    metric.name,
                    f"{metric.definition}; not comparable with other trainers' values",
                    metric.unit,
                    key,
                    "not comparable",
                )
        if name in done.curves and len(done.curves[name].values) >= len(values):
            continue  # the same quantity under two spellings: the longer one stays
        if len(values):
            done.curves[name] = Curve(metric, steps, values)
    return done


def _points(column: Column) -> tuple[Any, Any]:
    """One value a step: rows of the same step (micro-batches, ranks) are averaged."""
    steps = np.frombuffer(column.steps, dtype=np.int64)
    values = np.frombuffer(column.values, dtype=np.float64)
    if len(steps) > 1 and not np.all(steps[1:] > steps[:-1]):
        order = np.argsort(steps, kind="stable")
        steps, values = steps[order], values[order]
        begins = np.flatnonzero(np.r_[True, steps[1:] != steps[:-1]])
        counts = np.diff(np.r_[begins, len(steps)])
        with np.errstate(invalid="ignore"):  # inf - inf within one step
            values = np.add.reduceat(values, begins) / counts
        steps = steps[begins]
    return steps.copy(), values.copy()


def _apply(
    rule: MetricRule, steps: Any, values: Any, metric: Metric, config: Mapping[str, Setting]
) -> tuple[Any, Any, Metric]:
    kind = rule.conversion
    if kind is None:
        finite = values[np.isfinite(values)]
        # A share logged as 0 to 100 without a percent sign.
        if (
            rule.unit == "share"
            and len(finite)
            and rule.comparable
            and finite.min() >= 0
            and 1.5 < median(finite) <= 100
            and finite.max() <= 100
        ):
            return steps, values / 100, _converted(metric, "percent to share")
        return steps, values, metric
    if kind == "percent":
        return steps, values / 100, _converted(metric, "percent to share")
    if kind == "negate":
        return steps, -values, _converted(metric, "sign turned")
    if kind == "double":
        return steps, values * 2, _converted(metric, "doubled")
    if kind == "halve":
        return steps, values / 2, _converted(metric, "halved")
    if kind.startswith("count_of:"):
        knob = kind.partition(":")[2]
        total = config.get(knob)
        if total is not None and isinstance(total.value, int | float) and total.value > 0:
            return steps, values / total.value, _converted(metric, f"count divided by {knob}")
        return steps[:0], values[:0], metric  # a count of unknown how many is no share
    raise ValueError(f"unknown conversion {kind!r} for {rule.key}")


def _converted(metric: Metric, how: str) -> Metric:
    return Metric(metric.name, metric.definition, metric.unit, metric.source_key, how)


def _zero_is_real(rule: MetricRule, config: Mapping[str, Setting]) -> bool:
    """A clip fraction of exactly 0 is a measurement where the run makes several updates a batch."""
    if rule.zero != "by-construction":
        return False
    updates = config.get("updates_per_batch")
    return updates is not None and isinstance(updates.value, int | float) and updates.value > 1


def _without_first_passes(steps: Any, values: Any, metric: Metric) -> tuple[Any, Any, Metric]:
    zero = values == 0
    if (
        not len(values)
        or not FIRST_PASS_SHARE <= zero.mean() < 1
        or median(values[~zero]) < FIRST_PASS_LEVEL
    ):
        return steps, values, metric
    if (
        np.mean(zero[1:] != zero[:-1]) < 0.5
    ):  # passes alternate; a curve that is 0 for a long stretch is just 0 there
        return steps, values, metric
    return (
        steps[~zero],
        values[~zero],
        _converted(metric, "first passes over a fresh batch (exactly 0) left out"),
    )


def _mapped(target: str) -> str:
    return ROLES[target].names[-1].replace("*", "mapped") if target in ROLES else target


def _unit(name: str) -> str:
    role = role_of(name)
    return ROLES[role].unit if role else "1"
