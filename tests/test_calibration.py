"""The hit rates that reports print are those that the documentation shows, and they rank the words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from klinic.calibration import hit_rates

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["calibration.md", "calibration.zh.md"])
def test_the_page_shows_what_reports_print(page):
    rows = re.findall(r"^(\w+) +all +(\d+) +(\d+) +\d+ +(\d+)%$", (DOCS / page).read_text(), re.M)
    shown = {word: (int(groups), int(runs), int(share)) for word, groups, runs, share in rows}
    printed = {w: (r.groups, r.runs, round(100 * r.share)) for w, r in hit_rates().items()}
    assert shown == printed


def test_a_stronger_word_is_right_more_often():
    shares = [hit_rates()[word].share for word in ("certain", "likely", "possible")]
    assert shares == sorted(shares, reverse=True)
