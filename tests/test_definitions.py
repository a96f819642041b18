"""Every number that is not what its key says: turned into what it should be, marked not comparable, or left out.

The cases stand in definitions.toml. A last test walks the shared notes on trainers and fails where an entry whose formula,
unit or note speaks of a sign, a sum, a root, a percentage, a count, a normalised reward or a padded width has no case.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from klinic.configuration import settings_of
from klinic.sources.rows import Column
from klinic.trainers import tables
from klinic.trainers.convert import Converted, convert

CASES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("definitions.toml").read_text(encoding="utf-8")
)["case"]
TRAITS = re.compile(
    r"\bsigned|\bSIGN\b|\bsign:|negat|NEGATIVE|opposite|\bk1\b|new ?- ?old|old\w* ?- ?new|logp\w* ?- ?\w*(ref|old|prox)"
    r"|\bsum\b|SUM|sum_|accumulat|cumulat|sqrt|\broot\b|percent|0-100|pct|\bcount|COUNT|number of groups"
    r"|group.normal|longest|padd|PADDED|-kl_|0\.5\b|1 - frac|exp\(\|"
)


def _ids(case: dict[str, Any]) -> str:
    return f"{case['trainer']}:{case['key']}:{case['gives']}"


def columns(case: dict[str, Any]) -> dict[str, Column]:
    """The log of a case: its own key and those beside it, one value a step each."""
    logged = {case["key"]: case["value"], **case.get("with", {})}
    found: dict[str, Column] = {}
    for key, given in logged.items():
        column = found[key] = Column()
        for step, value in enumerate(given if isinstance(given, list) else [given], start=1):
            column.steps.append(step)
            column.values.append(float(value))
    return found


def read(case: dict[str, Any]) -> Converted:
    """The case, as the trainer's table reads it under the configuration it states."""
    table = tables()[case["trainer"]]
    stated = {key: (value, "test") for key, value in case.get("config", {}).items()}
    return convert(columns(case), table, settings_of(stated, table), {})


@pytest.mark.parametrize("case", CASES, ids=_ids)
def test_a_number_is_converted_marked_or_left_out(case: dict[str, Any]) -> None:
    done, gives = read(case), case["gives"]
    if gives == "unread":
        assert case["key"] in done.unread
        return
    if gives == "absent":
        assert case["name"] not in done.curves
        assert all(done.absent[case["name"]]), "a reason in both languages"
        return
    curve = done.curves[case["name"]]
    if gives == "not comparable":
        assert not curve.metric.comparable
        assert (
            curve.values.tolist() == pytest.approx([case["becomes"]]) if "becomes" in case else True
        )
        return
    assert curve.metric.comparable
    if gives == "as logged":
        assert curve.metric.conversion is None
        gives = case["value"]
    else:
        assert curve.metric.conversion, "what was done must be said"
    assert curve.values.tolist() == pytest.approx(gives if isinstance(gives, list) else [gives])


def test_no_case_stands_there_twice_and_each_says_why() -> None:
    seen = [json.dumps(case, sort_keys=True) for case in CASES]
    assert len(seen) == len(set(seen))
    assert all(case["why"] for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=_ids)
def test_klinic_metrics_shows_it(case: dict[str, Any], tmp_path: Path) -> None:
    """As the command prints it: the canonical name, and what was done."""
    from click.testing import CliRunner

    from klinic.cli import klinic

    place = tmp_path / "metrics.jsonl"
    rows: dict[int, dict[str, float]] = {}
    for key, column in columns(case).items():
        for step, value in zip(column.steps, column.values, strict=True):
            rows.setdefault(step, {"step": step})[key] = value
    place.write_text("\n".join(json.dumps(row) for row in rows.values()), encoding="utf-8")
    extra: list[str] = []
    if case.get("config"):
        (tmp_path / "stated.json").write_text(json.dumps(case["config"]), encoding="utf-8")
        extra = ["--config", str(tmp_path / "stated.json")]
    shown = CliRunner().invoke(
        klinic, ["metrics", str(place), "--trainer", case["trainer"], "--lang", "en", *extra]
    )
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.output.split())
    if case["gives"] == "unread":
        assert case["key"] in text.partition("not understood")[2]
        return
    assert case["name"] in text
    curve = read(case).curves.get(case["name"])
    if curve is not None and curve.metric.conversion:
        assert curve.metric.conversion in text


@pytest.mark.parametrize("case", CASES, ids=_ids)
def test_what_was_done_is_said_in_chinese(case: dict[str, Any]) -> None:
    from klinic.advise.conversions import conversion_in

    curve = read(case).curves.get(case["name"])
    if curve is not None and curve.metric.conversion:
        said = conversion_in(curve.metric.conversion, "zh")
        assert re.search("[\u4e00-\u9fff]", said), said
        assert said.count("；") == curve.metric.conversion.count("; ")


def listed(notes: Path) -> list[tuple[str, str]]:
    """Trainer and key of every entry of the shared notes that speaks of such a trait."""
    found = []
    for name in ("native.json", "hf.json"):
        document = json.loads((notes / name).read_text(encoding="utf-8"))
        for row in document["metrics"] if isinstance(document, dict) else document:
            told = " ".join(
                str(row.get(part) or "")
                for part in ("canonical", "aggregation", "formula", "note", "warn")
            )
            if row.get("key") and "canonical" in row and TRAITS.search(told):
                found.append((row["trainer"], row["key"]))
    return found


def test_every_entry_of_the_notes_with_such_a_trait_has_a_case(shared: Path) -> None:
    covered = {
        (trainer, key)
        for case in CASES
        for trainer in case.get("listed", [case["trainer"]])
        for key in [case.get("written", case["key"])]
    }
    assert not [entry for entry in listed(shared / "trainers") if entry not in covered]
