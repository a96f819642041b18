"""``klinic metrics RUN --missing``: every vital metric a run lacks, how its trainer logs it, what is blind without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from blocks import blocks_in, run_of
from click.testing import CliRunner

from klinic.advise.missing import ASKED, checklist, dashboard, lacks
from klinic.cli import klinic
from klinic.diagnose import judge
from klinic.run import Run, Trainer
from klinic.text import LANGUAGES
from klinic.trainers import GENERIC, tables

FAILURES = Path(__file__).parent.parent / "src" / "klinic" / "failures"
RUNS = Path(__file__).parent / "runs"
TRAINERS = sorted(set(tables()) - {GENERIC, "lab"})


def bare(name: str) -> Run:
    """A run of that trainer which logs a learning rate and nothing else."""
    run = run_of(blocks_in(FAILURES / "entropy_collapse.en.md")[0], 0)
    return replace(run, curves={}, trainer=Trainer(name, tables()[name].title, "test"))


@pytest.mark.parametrize("name", TRAINERS)
def test_every_role_has_a_line_of_this_trainer(name: str) -> None:
    """A flag of its own or a clause in both languages; never the advice for hand-written loops."""
    found = lacks(judge(bare(name)))
    assert [lack.missing.metric for lack in found] == list(ASKED)
    for lack in found:
        assert lack.own, lack.missing.metric
        assert lack.missing.how or all(lack.missing.clause[lang] for lang in LANGUAGES)


@pytest.mark.parametrize("name", TRAINERS)
def test_it_says_what_cannot_be_diagnosed(name: str) -> None:
    blind = {lack.missing.metric: lack.blind for lack in lacks(judge(bare(name)))}
    assert "entropy-collapse" in blind["entropy"] and "kl-runaway" in blind["kl"]
    assert "truncation-rise" in blind["trunc"] and "weight-sync-failure" in blind["mismatch"]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_hand_written_loop_gets_the_dashboard_as_a_checklist(lang: str) -> None:
    shown = CliRunner().invoke(
        klinic, ["metrics", str(RUNS / "minimind"), "--missing", "--lang", lang]
    )
    assert shown.exit_code == 0
    lines = [line.strip() for line in shown.output.splitlines()]
    assert len([line for line in lines if line.startswith(("[x]", "[ ]"))]) == len(
        [item for item in dashboard() if item.part != "critic"]
    )
    assert any(line.startswith("[x] kl:") for line in lines)
    assert any(line.startswith("[ ] grad_norm:") for line in lines)


def test_other_trainers_get_no_checklist() -> None:
    shown = CliRunner().invoke(
        klinic, ["metrics", str(RUNS / "slime"), "--missing", "--lang", "en"]
    )
    assert "[ ]" not in shown.output and "not logged: ratio_mean" in shown.output


def test_the_names_it_proposes_are_names_klinic_reads() -> None:
    """Each stands for what the item says, without --map."""
    table = tables()[GENERIC]
    for item in dashboard():
        for key in filter(None, item.key.split(", ")):
            rule = table.rule(key.replace("NAME", "math").replace("/N", "/3"))
            assert rule is not None, key
            name = rule[0].name.replace("{}", rule[1] or "math")
            run = replace(bare(GENERIC), curves={name: None, f"{name}-2": None})  # type: ignore[dict-item]
            assert item.logged(run) or item.least > 1, (key, name)


def test_a_critic_is_asked_for_only_where_there_is_one() -> None:
    run = bare(GENERIC)
    assert not [item for item, _ in checklist(run) if item.part == "critic"]
    with_critic = replace(run, curves={"value_loss/unknown": None})  # type: ignore[dict-item]
    assert [logged for item, logged in checklist(with_critic) if item.part == "critic"] == [
        True,
        False,
    ]
