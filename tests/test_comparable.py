"""A curve whose level is not comparable is judged by its shape alone: on another scale every verdict stays the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from blocks import Block, blocks_in, run_of

from klinic.diagnose import judge
from klinic.render._words import unchecked
from klinic.run import NOT_COMPARABLE, Curve, Run
from klinic.vitals import players

FAILURES = Path(__file__).parent.parent / "src" / "klinic" / "failures"
ROLES = ("kl", "entropy", "clip_frac", "trunc", "ratio_mean")
SCALES = (1.0, 5.0)  # a sum over five minibatches


def unsure(run: Run, role: str, scale: float) -> Run:
    """The run with the curves of a role on another scale, marked not comparable."""
    curves = dict(run.curves)
    for name in players(role, run.curves):
        curve = curves[name]
        metric = replace(curve.metric, conversion=NOT_COMPARABLE)
        curves[name] = Curve(metric, curve.steps, curve.values * scale)
    return replace(run, curves=curves)


def blocks() -> list[Block]:
    """The first block of every page."""
    found = []
    for page in sorted(FAILURES.glob("*.en.md")):
        found += blocks_in(page)[:1]
    return found


@pytest.mark.parametrize("role", ROLES)
def test_another_scale_of_what_is_not_comparable_changes_no_verdict(role: str) -> None:
    tried = 0
    for block in blocks():
        if not any(line["name"] == role for line in block.curves):
            continue
        tried += 1
        answers = [judge(unsure(run_of(block, 0), role, scale)) for scale in SCALES]
        said = [{f.failure: (f.status, f.severity) for f in answer.findings} for answer in answers]
        assert said[0] == said[1], block.text
    assert tried


def test_the_report_says_why_it_did_not_judge_the_level() -> None:
    block = next(b for b in blocks() if any(line["name"] == "trunc" for line in b.curves))
    answer = judge(unsure(run_of(block, 0), "trunc", 1.0))
    finding = next(f for f in answer.findings if f.failure == "truncation-rise")
    assert finding.status == "not_checked"
    for lang, words in (("en", "not comparable"), ("zh", "不可比")):
        line = next(line for line in unchecked(answer, lang) if line.startswith("truncation-rise"))
        assert words in line and "trunc" in line


def test_the_shape_of_what_is_not_comparable_still_counts() -> None:
    block = blocks_in(FAILURES / "kl_runaway.en.md")[0]
    answer = judge(unsure(run_of(block, 0), "kl", 0.2))
    assert any(f.failure == "kl-runaway" and f.status == "present" for f in answer.findings)
