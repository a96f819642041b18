"""From a trainer's keys to canonical metrics: unit, sign and share put right, zeros that mean "not computed" left out."""

from __future__ import annotations

import re
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
NOT_COMPARABLE = "not comparable"
BESIDE = ("over:", "minus:")
_KNOB_IN_NAME = re.compile(r"\{(\w+)\}")
# What trainers call the estimators of KL (verl's core_algos.py, slime's ppo_utils.py, ROLL's functionals.py).
ESTIMATORS = {
    "kl": "k1",
    "abs": "abs",
    "mse": "k2",
    "low_var_kl": "k3",
    "0": "k1",
    "1": "k2",
    "2": "k3",
}


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
    summed = _summed(columns, table)
    # What is logged as such comes before what is computed from two keys: of one name the first stays.
    for key, column in sorted(summed.items(), key=lambda item: _is_beside(table, item[0])):
        if key in mapping:
            name, rule, part = _mapped(mapping[key]), None, ""
            metric = Metric(name, "as mapped by --map", _unit(name), key)
        else:
            found = table.rule(key) or (generic.rule(key) if table is not generic else None)
            if found is None:
                done.unread.append(key)
                continue
            rule, part = found
            name = _named(rule.name.replace("{}", part), table, config)
            metric = Metric(name, rule.definition, rule.unit, key)
        steps, values = _points(column)
        if rule is not None:
            if (rule.conversion or "").startswith(BESIDE):
                assert rule.conversion is not None
                steps, values, metric = _beside(rule.conversion, steps, values, metric, columns)
            else:
                steps, values, metric = _apply(rule, steps, values, metric, config, table)
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
                    NOT_COMPARABLE,
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
    rule: MetricRule,
    steps: Any,
    values: Any,
    metric: Metric,
    config: Mapping[str, Setting],
    table: Table,
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
    if kind == "square":
        return steps, np.square(values), _converted(metric, "squared: the log has the root")
    if kind == "complement":
        return steps, 1 - values, _converted(metric, "1 minus the value")
    if kind == "minus_one":
        return steps, values - 1, _converted(metric, "1 subtracted")
    if kind == "double":
        return steps, values * 2, _converted(metric, "doubled")
    if kind == "halve":
        return steps, values / 2, _converted(metric, "halved")
    if kind.startswith("negate_divide:"):
        knob = kind.partition(":")[2]
        by = config.get(knob)
        if by is not None and isinstance(by.value, int | float) and by.value > 0:
            return steps, -values / by.value, _converted(metric, f"sign turned, divided by {knob}")
        # Unless the run states it, the trainer's default is assumed: what the curve does over time holds anyway.
        rule_of = table.knob.get(knob)
        assumed = rule_of.default if rule_of is not None else None
        by_default = float(assumed) if isinstance(assumed, int | float) and assumed > 0 else 1.0
        return steps, -values / by_default, _converted(metric, NOT_COMPARABLE)
    if kind.startswith(("count_of:", "counts_of:")):
        knob = kind.partition(":")[2]
        total = config.get(knob)
        if total is not None and isinstance(total.value, int | float) and total.value > 0:
            return steps, values / total.value, _converted(metric, f"count divided by {knob}")
        return steps[:0], values[:0], metric  # a count of unknown how many is no share
    raise ValueError(f"unknown conversion {kind!r} for {rule.key}")


def _is_beside(table: Table, key: str) -> bool:
    found = table.rule(key)
    return found is not None and (found[0].conversion or "").startswith(BESIDE)


def _beside(
    conversion: str, steps: Any, values: Any, metric: Metric, columns: Mapping[str, Column]
) -> tuple[Any, Any, Metric]:
    """over:KEY divides by, minus:KEY subtracts another key of the log, at the steps where both are logged."""
    kind, _, other = conversion.partition(":")
    if other not in columns:
        return steps[:0], values[:0], metric
    other_steps, other_values = _points(columns[other])
    both, mine, theirs = np.intersect1d(steps, other_steps, return_indices=True)
    if kind == "minus":
        return both, values[mine] - other_values[theirs], _converted(metric, f"minus {other}")
    total = other_values[theirs]
    some = total > 0
    share = values[mine][some] / total[some]
    return both[some], share, _converted(metric, f"count divided by {other}")


def _summed(columns: Mapping[str, Column], table: Table) -> Mapping[str, Column]:
    """Columns, where the counts of one rule (counts_of: one key a kind of group) are one column.

    A kind that did not occur at a step has no row there, so what is missing counts 0.
    """
    sums: dict[str, dict[int, float]] = {}
    rest: dict[str, Column] = {}
    for key, column in columns.items():
        found = table.rule(key)
        if found is None or not (found[0].conversion or "").startswith("counts_of:"):
            rest[key] = column
            continue
        steps, values = _points(column)
        into = sums.setdefault(found[0].key, {})
        for step, value in zip(steps.tolist(), values.tolist(), strict=True):
            into[step] = into.get(step, 0.0) + value
    for name, by_step in sums.items():
        column = rest[name] = Column()
        for step, value in sorted(by_step.items()):
            column.steps.append(step)
            column.values.append(value)
    return rest if sums else columns


def _named(name: str, table: Table, config: Mapping[str, Setting]) -> str:
    """A name with {KNOB} filled in: the estimator of a KL is a setting in most trainers."""

    def filled(found: re.Match[str]) -> str:
        knob = found.group(1)
        rule = table.knob.get(knob)
        value = config[knob].value if knob in config else (rule.default if rule else None)
        return "unknown" if value is None else ESTIMATORS.get(str(value), str(value))

    return _KNOB_IN_NAME.sub(filled, name)


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
