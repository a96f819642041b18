"""From a trainer's keys to canonical metrics: unit, sign and share put right, zeros that mean "not computed" left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from klinic.median import median
from klinic.run import NOT_COMPARABLE, Curve, Metric, Setting
from klinic.sources.rows import Column
from klinic.trainers import GENERIC, MetricRule, Table, tables
from klinic.trainers.conversions import (
    BESIDE,
    COUNTS,
    apply,
    as_share,
    beside,
    converted,
    in_percent,
)
from klinic.vitals import ROLES, role_of

# TRL's clip_ratio is 0 on the first pass over a fresh batch (grpo_trainer.py:3275), so with two passes half the
# rows are 0: left in, they would halve the clip fraction.
FIRST_PASS_SHARE = 0.3
FIRST_PASS_LEVEL = 0.02
_KNOB_IN_NAME = re.compile(r"\{(\w+)\}")
# What trainers call the estimators of KL (verl's core_algos.py, slime's ppo_utils.py, ROLL's functionals.py), and how a
# loss is averaged (verl's and ROLL's loss_agg_mode, SkyRL's loss_reduction, NeMo-RL's token_level_loss).
WORDS = {
    "kl": "k1",
    "abs": "abs",
    "mse": "k2",
    "low_var_kl": "k3",
    "low_var_kl+": "k3",
    "k1+": "k1",
    "k3+": "k3",
    "0": "k1",
    "1": "k2",
    "2": "k3",
    "token-mean": "token_mean",
    "seq-mean-token-mean": "seq_mean_token_mean",
    "seq-mean-token-sum": "seq_sum",
    "seq-mean-token-sum-norm": "seq_sum_norm",
    "true": "token_mean",
    "false": "seq_mean_token_mean",
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
    defined: Mapping[str, tuple[str, str]] | None = None,
) -> Converted:
    """Name every column. mapping: log key -> role or canonical name, from ``--map``; it wins over the tables.

    defined: own name -> definition and unit, as the log itself says of names that no table knows.
    """
    done = Converted()
    generic = tables()[GENERIC]
    summed = _summed(columns, table)
    logged = table.bare(columns)
    # What is logged as such comes before what is computed from two keys: of one name the first stays.
    for key, column in sorted(summed.items(), key=lambda item: _is_beside(table, item[0])):
        if key in mapping:
            metric = Metric(
                _mapped(mapping[key]), "as mapped by --map", _unit(_mapped(mapping[key])), key
            )
            _keep(done, metric, *_points(column))
            continue
        found = table.rule(key) or (generic.rule(key) if table is not generic else None)
        if found is None and defined and key in defined:
            _keep(done, Metric(key, *defined[key], key), *_points(column))
            continue
        if found is None:
            done.unread.append(key)
            continue
        rule = found[0].under(logged, lambda knob: _value(knob, table, config))
        name = _named(rule.name.replace("{}", found[1]), table, config)
        metric = Metric(name, rule.definition, rule.unit, key)
        steps, values, metric = _numbers(rule, *_points(column), metric, columns, config, table)
        if not len(values) and (rule.conversion or "").startswith(COUNTS):
            done.absent.setdefault(name, _uncounted(rule, table))
            continue
        if rule.zero and _is_zero(values) and not _zero_is_real(rule, config):
            done.absent[name] = (rule.zero_en, rule.zero_zh)
            continue
        if rule.zero == "by-construction":
            steps, values, metric = _without_first_passes(steps, values, metric)
        if metric.comparable and not (rule.comparable and (not rule.if_share or as_share(values))):
            metric = converted(metric, NOT_COMPARABLE)
        _keep(done, metric, steps, values)
    return done


def _keep(done: Converted, metric: Metric, steps: Any, values: Any) -> None:
    """The same quantity under two spellings: the longer one stays."""
    kept = done.curves.get(metric.name)
    if len(values) and (kept is None or len(kept.values) < len(values)):
        done.curves[metric.name] = Curve(metric, steps, values)


def _numbers(
    rule: MetricRule,
    steps: Any,
    values: Any,
    metric: Metric,
    columns: Mapping[str, Column],
    config: Mapping[str, Setting],
    table: Table,
) -> tuple[Any, Any, Metric]:
    """Steps and values as the rule's conversion leaves them."""
    kind = rule.conversion
    if kind is None:
        if rule.unit == "share" and rule.comparable and not rule.if_share and in_percent(values):
            return steps, *apply("percent", values, metric, config, table)
        return steps, values, metric
    if kind.startswith(BESIDE):
        return beside(kind, steps, values, metric, columns, _points)
    values, metric = apply(kind, values, metric, config, table)
    return steps[: len(values)], values, metric


def _is_zero(values: Any) -> bool:
    finite = values[np.isfinite(values)]
    return bool(len(finite)) and not np.any(finite)


def _uncounted(rule: MetricRule, table: Table) -> tuple[str, str]:
    """Why a count is no share here: what it must be divided by is not stated."""
    knob = (rule.conversion or "").partition(":")[2]
    flag = table.knob[knob].flag if knob in table.knob else knob
    return (
        f"logged as a count ({rule.key}); without {flag} in the log it is no share",
        f"记录的是个数（{rule.key}）；日志里没有 {flag}，无法换算成占比",
    )


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


def _is_beside(table: Table, key: str) -> bool:
    found = table.rule(key)
    return found is not None and (found[0].conversion or "").startswith(BESIDE)


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


def _value(knob: str, table: Table, config: Mapping[str, Setting]) -> Any:
    """A knob as the run states it, else its default."""
    rule = table.knob.get(knob)
    return config[knob].value if knob in config else (rule.default if rule else None)


def _named(name: str, table: Table, config: Mapping[str, Setting]) -> str:
    """A name with {KNOB} filled in: the estimator of a KL is a setting in most trainers."""

    def filled(found: re.Match[str]) -> str:
        value = _value(found.group(1), table, config)
        return "unknown" if value is None else WORDS.get(str(value).lower(), str(value))

    return _KNOB_IN_NAME.sub(filled, name)


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
        converted(metric, "first passes over a fresh batch (exactly 0) left out"),
    )


def _mapped(target: str) -> str:
    return ROLES[target].names[-1].replace("*", "mapped") if target in ROLES else target


def _unit(name: str) -> str:
    role = role_of(name)
    return ROLES[role].unit if role else "1"
