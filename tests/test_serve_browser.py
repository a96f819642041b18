"""The web app in a real browser: every page in every look, by keyboard alone, live, hostile and with a thousand runs."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from browser import chromium, serious_findings
from serving import Server, line, log, serving

import klinic
from klinic.serve import places

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
LAB = HERE / "runs" / "lab"
DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"
LOOKS = [
    (1280, "light", "rgb(245, 246, 248)"),
    (1280, "dark", "rgb(14, 18, 23)"),
    (400, "light", "rgb(245, 246, 248)"),
    (400, "dark", "rgb(14, 18, 23)"),
]
EVIL = "<script>document.title='HACKED'</script><img src=x onerror=\"document.title='HACKED'\">\x1b[31m\u202e"
LEDGER = [
    {"event": "begin", "at": "2026-11-30T10:00:00+00:00", "run": "/runs/collapse"},
    {"event": "diagnosed", "failure": "entropy-collapse", "severity": "stop", "onset": [43, 43, 45]},
    {"event": "ran", "role": "control", "command": ["python", "train.py", EVIL], "exit": 0},
    {"event": "judged", "verdict": "better", "mover": "entropy", "control": 0.1, "new": 1.2},
    {"event": "end", "status": "rescued", "tried": ["--temperature 1.1: rescued"]},
]  # fmt: skip


def sampled(folder: Path) -> None:
    log(folder, 60)
    with open(folder / "rollouts.jsonl", "w") as stream:
        for i in range(96):
            step = 20 * (1 + i // 32)
            row = {
                "step": step, "group": f"g{i % 4}", "prompt": f"What is {i} + 1? {EVIL}", "completion": f"It is {i + 1}. {EVIL}",
                "reward": (i % 5) / 4, "reward_parts": {"correct": i % 2, EVIL: 1.0}, "answer": str(i + 1),
            }  # fmt: skip
            stream.write(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    top = tmp_path_factory.mktemp("serve")
    folder = top / "runs"
    shutil.copytree(DEMO, folder / "collapse", copy_function=shutil.copyfile)  # of today
    shutil.copytree(LAB / "healthy-odd-s2", folder / "fine")
    sampled(folder / "sampled")
    log(folder / EVIL.replace("/", "_"), 30)
    (folder / "empty").mkdir()
    (folder / "empty" / "train.log").write_bytes(b"\x00\xff" * 900)
    (folder / "rescue").mkdir()
    (folder / "rescue" / "ledger.jsonl").write_text("".join(json.dumps(e) + "\n" for e in LEDGER))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(top / "cache"))
        with serving(folder, state=top / "s.sqlite") as made:
            made.until(lambda rows: len(rows) >= 4 and not made.work.board.waiting)
            yield made


@pytest.fixture
def opened(browser):
    """Opens a page; whatever it complains of, or asks another server for, fails the test."""
    contexts, complaints = [], []

    def open_(server, path="/", width=1280, theme="light", lang="en", forgive=()):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, locale={"en": "en-GB", "zh": "zh-CN"}[lang]
        )  # fmt: skip
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)

        def complain(text):
            if not any(word in text for word in forgive):
                complaints.append(text)

        page.on("console", lambda m: complain(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: complain(str(e)))
        page.on("dialog", lambda d: complain(d.message))
        page.on("request", lambda r: None if r.url.startswith(server.url) else complain(r.url))
        page.goto(server.url + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not complaints


def addresses(server):
    ids = {name: run for name, (_, run) in server.rows().items()}
    return [
        "/", f"/run/{ids['collapse']}", f"/run/{ids['empty']}" if "empty" in ids else "/nowhere", f"/run/{ids['sampled']}/rollouts",
        f"/run/{ids['sampled']}/rollouts?show=diff&before=20&after=60", f"/run/{ids['fine']}/rollouts",
        f"/compare?a={ids['collapse']}&b={ids['fine']}", "/alerts", "/ledger", "/failures", "/failures/entropy-collapse",
        "/course", "/course/read", "/course/pair-1", "/course/scene-1?round=2", "/course/quiz-7",
    ]  # fmt: skip


@pytest.mark.parametrize(("lang", "width", "theme"), [("en", 1280, "light"), ("zh", 400, "dark")])
def test_every_page_in_every_look(opened, server, lang, width, theme):
    page = opened(server, "/words.json", lang=lang, forgive=("404",))
    for address in addresses(server):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=theme)
        page.goto(server.url + address)
        if page.locator("#report").count():
            page.wait_for_selector(".panel canvas")
        assert page.get_attribute("html", "lang") == {"en": "en", "zh": "zh-Hans"}[lang]
        assert page.locator("h1").count() == 1, address
        assert page.title() != "HACKED" and not page.locator("main img").count()
        assert not serious_findings(page), address
        for wide, colours, ground in LOOKS:
            page.set_viewport_size({"width": wide, "height": 900})
            page.emulate_media(color_scheme=colours)
            found = page.evaluate(
                "[getComputedStyle(document.body).backgroundColor, document.documentElement.scrollWidth]"
            )
            assert found[0] == ground and found[1] <= wide, (address, wide, colours)


def test_a_choice_of_language_and_colours_stays(opened, server):
    page = opened(server)
    page.click("text=中文")
    page.click("[aria-label=深色]")
    page.click("nav >> text=课程")
    assert page.get_attribute("html", "data-theme") == "dark"
    assert page.get_attribute("html", "lang") == "zh-Hans"
    run = server.id("collapse")
    page.goto(f"{server.url}/run/{run}?lang=en")
    assert page.locator("h2#verdict").inner_text().startswith("Entropy collapse")


def test_by_keyboard_alone(opened, server):
    page = opened(server)

    def tab_to(what, most=40):
        for _ in range(most):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({what!r})"):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", what
                return
        raise AssertionError(what)

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    tab_to("input[name=q]", 3)
    page.keyboard.type("coll")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=coll*")
    tab_to(".runs a.whole")
    page.keyboard.press("Enter")
    page.wait_for_selector(".panel canvas")
    tab_to(".tools a[href*=rollouts]")
    page.keyboard.press("Enter")
    page.wait_for_url("**/rollouts**")
    page.goto(server.url + "/course/pair-1")
    tab_to("select[name=answer]")
    page.keyboard.type("Entropy c")
    page.keyboard.press("Tab")
    page.keyboard.type("Weight")
    tab_to("button[value=answer]")
    page.keyboard.press("Enter")
    page.wait_for_selector(".verdict-said.healthy")
    page.goto(server.url + "/alerts")
    before = page.locator(".alert button").count()
    tab_to(".alert button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".past button")
    assert page.locator("#waiting ~ ul .alert").count() == before - 1


def test_pages_follow_runs_that_grow_come_and_go(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "SCAN", 0.5)
    growing, going = log(tmp_path / "runs" / "growing", 60), log(tmp_path / "runs" / "going", 30)
    with serving(tmp_path / "runs", state=tmp_path / "s.sqlite") as server:
        server.until(lambda rows: len(rows) == 2 and not server.work.board.waiting)
        page = opened(server, f"/run/{server.id('growing')}", forgive=("ERR_",))
        page.wait_for_selector("#report[data-last='60']")
        listed = opened(server, forgive=("ERR_",))
        last = opened(server, f"/run/{server.id('going')}", forgive=("404", "ERR_"))
        last.wait_for_selector("#report[data-last='30']")
        for step in range(61, 64):
            with open(growing, "a") as stream:
                stream.write(line(step))
            began = time.monotonic()
            page.wait_for_selector(f"#report[data-last='{step}']")
            assert time.monotonic() - began < 2
        listed.wait_for_selector("text=step 63")
        log(tmp_path / "runs" / "coming", 20)
        listed.wait_for_selector("text=coming")
        shutil.rmtree(going.parent)
        listed.wait_for_selector("text=going", state="detached")
        last.wait_for_selector("[data-gone]:not([hidden])")


def test_a_page_outlives_the_server(opened, tmp_path):
    log(tmp_path / "runs" / "one", 20)
    state = tmp_path / "s.sqlite"
    server = Server(tmp_path / "runs", state=state)
    try:
        server.until(lambda rows: len(rows) == 1)
        page = opened(server, forgive=("ERR_", "Failed"))
        page.wait_for_selector("text=step 20")
    finally:
        server.stop()
    page.wait_for_selector("[data-lost]:not([hidden])")
    log(tmp_path / "runs" / "two", 20)
    with serving(tmp_path / "runs", state=state, port=server.port):
        page.wait_for_selector("[data-lost][hidden]", state="attached", timeout=20_000)
        page.wait_for_selector("text=two")


def test_a_hostile_sample_is_text(opened, server):
    page = opened(server, f"/run/{server.id('sampled')}/rollouts?show=group&group=60/g0")
    assert page.locator("pre.sample").count() == 16
    shown = page.locator("pre.sample").nth(1).inner_text()
    assert "<script>document.title='HACKED'</script><img" in shown and "⟨ESC⟩[31m⟨U+202E⟩" in shown
    assert "HACKED" not in page.title()
    assert not page.locator("main script, main img").count()


def test_a_thousand_runs(opened, tmp_path):
    for i in range(1000):
        log(tmp_path / "runs" / f"run-{i:04d}", 12)
    with serving(tmp_path / "runs", state=tmp_path / "s.sqlite") as server:
        page = opened(server, forgive=("ERR_",))
        page.wait_for_selector(".runs > li >> nth=99", timeout=40_000)
        began = time.monotonic()
        assert server.ask("/").status == 200
        assert time.monotonic() - began < 1  # while the others are being read
        page.click("a[rel=next]")
        page.wait_for_selector(".runs > li")
        assert "page=2" in page.url
