"""The report in a real browser: opened from a file, without a network, by mouse and by keyboard."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, serious_findings

import klinic
from klinic.vitals import VITALS

pytestmark = pytest.mark.browser

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"
LOOKS = [(1280, "light", "en"), (1280, "dark", "zh"), (400, "light", "zh"), (400, "dark", "en")]
Open = Callable[..., Any]


def report(place: Path, *args: object) -> Path:
    subprocess.run(
        [sys.executable, "-m", "klinic", "diagnose", *map(str, args), "-o", str(place)], check=False
    )
    return place


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(tmp_path_factory.mktemp("report") / "report.html", DEMO)


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a file offline; whatever the page complains of, or asks the network for, fails the test."""
    contexts, complaints = [], []

    def open_(place: Path, width: int = 1280, theme: str = "light") -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith(("file:", "blob:", "data:")) else complaints.append(r.url)
            ),
        )
        page.goto(place.as_uri())
        page.wait_for_selector(".panel canvas")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not complaints


@pytest.mark.parametrize(("width", "theme", "lang"), LOOKS)
def test_every_look_has_eight_curves_and_no_serious_finding(
    opened: Open, demo: Path, width: int, theme: str, lang: str
) -> None:
    page = opened(demo, width, theme)
    page.select_option("select[data-key=lang]", lang)
    assert page.locator("h2#verdict").inner_text().startswith({"en": "Entropy", "zh": "熵"}[lang])
    assert page.get_attribute("html", "lang") == {"en": "en", "zh": "zh-Hans"}[lang]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    titles = (
        page.locator(".panels")
        .first.locator("article")
        .evaluate_all(
            "all => all.map(a => a.getAttribute('aria-labelledby').replace('panel-', ''))"
        )
    )
    assert titles == list(VITALS)
    for summary in page.locator("details > summary").all()[:12]:
        summary.click()
    assert serious_findings(page) == []


def test_a_choice_of_colours_outlives_the_page(opened: Open, demo: Path) -> None:
    page = opened(demo)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.select_option("select[data-key=theme]", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.reload()
    page.wait_for_selector(".panel canvas")
    assert page.input_value("select[data-key=theme]") == "dark"


def test_a_keyboard_moves_through_all_curves_at_once(opened: Open, demo: Path) -> None:
    page = opened(demo)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "slider":
            break
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    sliders = page.locator(".panels").first.locator("[role=slider]")
    said = sliders.evaluate_all("all => all.map(a => a.getAttribute('aria-valuetext'))")
    assert len(said) == 6 and all(text.startswith("step 2:") for text in said), said
    page.keyboard.press("+")
    assert page.locator("[data-key=reset]").is_enabled()
    page.keyboard.press("0")
    assert page.locator("[data-key=reset]").is_disabled()


def test_dragging_zooms_and_axes_change(opened: Open, demo: Path) -> None:
    page = opened(demo)
    plot = page.locator(".panel .u-over").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 40, steps=4)
    page.mouse.up()
    assert page.locator("[data-key=reset]").is_enabled()
    for axis in ("time", "tokens", "step"):
        page.check(f"[data-key='axis {axis}']")
        assert page.evaluate("klinicReport.state.axis") == axis
    page.check("[data-key=log]")
    page.fill("[data-key=smooth]", "5")
    assert page.evaluate("[klinicReport.state.log, klinicReport.state.smooth]") == [True, 5]
    assert page.locator(".panel canvas").count() == 7  # six curves and the reward's parts


def test_other_metrics_are_found_by_a_word(opened: Open, demo: Path) -> None:
    page = opened(demo)
    page.fill("input[type=search]", "grad_norm")
    shown = page.locator(".metric:visible")
    assert shown.count() == 1
    shown.locator("summary").first.click()
    shown.locator("canvas").wait_for()
    assert shown.locator("canvas").bounding_box()["width"] > 300


def test_prints_on_paper(opened: Open, demo: Path) -> None:
    page = opened(demo, theme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.emulate_media(media="print")
    assert not page.locator(".switches").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_a_sample_is_text_and_nothing_else(opened: Open, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>\x1b[2J"
    with open(tmp_path / "log.jsonl", "w") as log, open(tmp_path / "rollouts.jsonl", "w") as dump:
        for step in range(60):
            log.write(
                json.dumps({"step": step, "reward": step / 60, "entropy": 1.0, "kl": 0.01}) + "\n"
            )
            for k in range(4):
                row = {"step": step, "prompt": hostile, "completion": hostile, "reward": k % 2}
                dump.write(json.dumps(row) + "\n")
    page = opened(report(tmp_path / "out.html", tmp_path, "--with-samples"))
    assert page.locator(".sample pre").count() >= 2
    assert hostile.split("\x1b")[0] in page.locator(".sample pre").first.inner_text()
    assert "owned" not in page.title()


def test_a_hundred_thousand_steps_keep_their_spikes_and_stay_smooth(
    opened: Open, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0)
    values = draw.random((100_000, 8)).round(4)
    values[70_000, 0] = 9.0
    with open(tmp_path / "log.jsonl", "w") as log:
        for step, row in enumerate(values.tolist()):
            log.write(json.dumps({"step": step, **dict(zip(VITALS, row, strict=True))}) + "\n")
    page = opened(report(tmp_path / "out.html", tmp_path / "log.jsonl"))
    assert page.evaluate(
        "() => { const d = JSON.parse(document.getElementById('klinic-data').textContent)[0];"
        " const m = new klinicReport.Model(d); const c = m.curve(d.panels[0].curve);"
        " const [xs, ys] = klinicReport.thin(c.steps, c.values, 0, 1e6, 400, () => true);"
        " return [c.values.length, Math.max(...ys), xs.length <= 1200]; }"
    ) == [100_000, 9, True]
    page.evaluate("klinicReport.choose({zoom: [1000, 90000]})")
    assert page.locator("[data-key=reset]").is_enabled()
    assert page.locator(".panel canvas").count() >= 8
