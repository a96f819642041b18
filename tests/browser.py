"""Debian's Chromium, driven for tests: one browser a module, no network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chromium import FLAGS, where

SERIOUS = ("serious", "critical")


@contextmanager
def chromium() -> Iterator[Any]:
    """A playwright browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="the browser extra is not installed")
    if where() is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where(), args=FLAGS)
        yield browser
        browser.close()


def serious_findings(page: Any) -> list[str]:
    """What axe-core holds against a page, serious and critical findings only, as "rule: element"."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {node['html'][:160]}"
        for rule in found
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]
