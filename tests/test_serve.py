"""The web app, asked over a real socket on loopback: what it shows, whom it refuses, what it survives."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")

from serving import line, log, serving

import klinic
from klinic.failures import cards
from klinic.read import read
from klinic.serve import places as places_module
from klinic.serve.run import address
from klinic.serve.views import rollouts as view
from klinic.text import sentences

HERE = Path(__file__).parent
LAB = HERE / "runs" / "lab"
DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse"
EVIL = "<img src=x onerror=alert(1)>"


LEDGER = [
    {"event": "begin", "at": "2026-11-30T10:00:00+00:00", "run": "/runs/collapse"},
    {"event": "diagnosed", "failure": "entropy-collapse", "severity": "stop", "onset": [43, 43, 45]},
    {"event": "ran", "role": "control", "command": ["python", EVIL], "exit": 0},
    {"event": "end", "status": "rescued", "tried": ["--temperature 1.1: rescued"]},
]  # fmt: skip


def sampled(folder: Path, wrote: str) -> None:
    log(folder, 60)
    with open(folder / "rollouts.a1.jsonl", "w") as stream:
        for i in range(96):
            row = {
                "step": 20 * (1 + i // 32), "group": f"g{i % 4}", "prompt": f"What is {i} + 1?", "completion": f"It is the {i + 1}. {wrote}",
                "reward": (i % 5) / 4, "reward_parts": {"correct": i % 2}, "answer": str(i + 1),
            }  # fmt: skip
            stream.write(json.dumps(row) + "\n")


def listing(folder: Path):
    return {
        (str(p), p.lstat().st_mtime_ns, p.lstat().st_size) for p in [folder, *folder.rglob("*")]
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of runs: one failing, one to mind, one hostile by name, one unreadable; and links that lead out of it."""
    top = tmp_path_factory.mktemp("serve")
    folder, outside = top / "runs", top / "outside"
    shutil.copytree(DEMO, folder / "collapse", copy_function=shutil.copyfile)  # of today
    shutil.copytree(LAB / "healthy-odd-s2", folder / "fine")
    log(folder / EVIL, 30)
    log(folder / "esc\x1b[31m\u202e", 30)
    (folder / "empty").mkdir()
    (folder / "empty" / "train.log").write_bytes(b"\x00\xff" * 900)
    log(outside / "secret", 30)
    shutil.copytree(LAB / "nan-odd-s2", folder / "peeks")
    shutil.move(folder / "peeks" / "run_config.json", outside)
    (folder / "peeks" / "run_config.json").symlink_to(outside / "run_config.json")
    sampled(outside / "samples", "kept outside")
    sampled(folder / "sampled", f"shown {EVIL}\x1b[31m")
    (folder / "sampled" / "rollouts.a2.jsonl").symlink_to(outside / "samples" / "rollouts.a1.jsonl")
    (folder / "rescue").mkdir()
    (folder / "rescue" / "ledger.jsonl").write_text("".join(json.dumps(e) + "\n" for e in LEDGER))
    (folder / "linked").symlink_to(outside / "secret")
    (folder / "file").mkdir()
    (folder / "file" / "train.jsonl").symlink_to(outside / "secret" / "train.jsonl")
    return folder


@pytest.fixture(scope="module")
def server(runs, tmp_path_factory):
    state = tmp_path_factory.mktemp("state") / "s.sqlite"
    with pytest.MonkeyPatch.context() as patch, serving(runs, state=state) as made:
        patch.setenv("XDG_CACHE_HOME", str(state.parent))
        made.until(lambda rows: len(rows) >= 4 and not made.work.board.waiting)
        yield made


PAGES = [
    "/", "/?part=rows", "/?status=failing", "/run/{run}", "/nowhere", "/run/000000000000", "/run/{sampled}/rollouts",
    "/run/{sampled}/rollouts?show=onset", "/run/{sampled}/rollouts?show=search&text=the", "/run/{sampled}/rollouts?show=diff&before=20&after=60",
    "/run/{sampled}/rollouts?show=group&group=60/g1", "/run/{sampled}/rollouts?show=top&by=nonsense&step=x", "/run/{run}/rollouts",
    "/compare", "/compare?a={run}&b={sampled}", "/alerts", "/alerts?run={run}", "/ledger", "/failures", "/failures/entropy-collapse",
    "/course", "/course?round=2", "/course/read", "/course/pair-1", "/course/scene-1?round=2", "/course/quiz-7", "/course/lab",
]  # fmt: skip


def pages(server):
    return [page.format(run=server.id("collapse"), sampled=server.id("sampled")) for page in PAGES]


class Markup(HTMLParser):
    """What could run in a page."""

    def __init__(self):
        super().__init__()
        self.bad, self.ids = [], []

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        self.ids += [names["id"]] if "id" in names else []
        inline = tag in ("script", "style") and "src" not in names
        acts = any(n.startswith("on") or n == "style" for n in names)
        leads = any(
            (names.get(n) or "").strip().lower().startswith(("javascript:", "data:", "http:", "//"))
            for n in ("href", "src", "action")
        )
        if inline or acts or leads or tag in ("iframe", "object", "embed", "img", "base"):
            self.bad.append(self.get_starttag_text())


def test_runs_are_listed_worst_first_and_the_address_filters(server):
    rows = server.rows()
    assert rows["collapse"][0] == "failing" and rows["fine"][0] in ("healthy", "caution")
    assert next(iter(rows)) == "collapse"
    page = server.ask("/?status=failing&q=coll").text
    assert "entropy-collapse" in page and "since step 43" in page and "--temperature" in page
    assert f'href="/run/{server.id("fine")}"' not in page
    assert "No run matches" in server.ask("/?q=nothing+like+it").text
    assert "熵崩塌" in server.ask("/?lang=zh").text


def test_the_report_of_a_run_is_served_as_data(server):
    found = server.ask(f"/run/{server.id('collapse')}/data")
    document = json.loads(found.text)
    assert document["failure"] == "entropy-collapse" and document["onset"]["step"] == 43
    assert document["run"]["last"] == 140 and found.headers["x-changed"]
    assert "klinicReport" in server.ask("/assets/report.js").text
    assert "--k-ground" in server.ask("/assets/report.css").text


def test_what_is_not_there_is_said_in_the_language_of_the_browser(server):
    gone = server.ask("/run/000000000000", Accept_Language="zh-CN,en")
    assert gone.status == 404 and "已经不在了" in gone.text and 'lang="zh-Hans"' in gone.text
    assert server.ask("/run/000000000000/data").status == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200), ("localhost", 200), ("[::1]:80", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421),
        ("10.0.0.7", 421), ("", 421),
    ],
)  # fmt: skip
def test_only_its_own_names_are_answered(server, host, status):
    assert server.ask("/", Host=host).status == status


def test_a_page_of_another_site_may_not_ask(server):
    own = {"Host": "localhost:80"}
    assert server.ask("/words.json", Origin="http://localhost:80", **own).status == 200
    for origin in ("http://evil.example", "null", "https://localhost:80", "http://localhost:81"):
        assert server.ask("/words.json", Origin=origin, **own).status == 403
        assert server.ask("/alerts/acknowledge", "POST", "", Origin=origin, **own).status == 403
    assert server.ask("/alerts/acknowledge", "POST", "", **own).status == 403  # says nothing
    assert server.ask("/words.json", Sec_Fetch_Site="cross-site", **own).status == 403
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", **own}
    assert server.ask("/", **link).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/%2e%2e/app.py", "/assets//etc/passwd", "/run/../../etc/passwd",
        "/run/..%2f..%2fetc%2fpasswd", "/run/%2fetc%2fpasswd/data", "/failures/..%2f..%2fen", "//etc/passwd", "/assets/en.toml",
    ],
)  # fmt: skip
def test_no_address_leads_to_a_file(server, path):
    found = server.ask(path)
    assert found.status in (404, 421) and "root:" not in found.text and "import" not in found.text


def test_links_out_of_the_folders_are_not_followed(server, runs):
    assert {"collapse", "fine"} <= server.rows().keys()
    assert not {"linked", "file", "secret"} & server.rows().keys()
    page = server.ask(f"/compare?a={server.id('peeks')}&b={server.id('fine')}").text
    assert "loss_scale" in json.dumps({k: str(v) for k, v in read(runs / "peeks").config.items()})
    assert "Where they part" in page and "loss_scale" not in page


def test_every_answer_binds_the_browser_and_no_page_holds_a_script(server):
    for path in [*pages(server), "/assets/live.mjs", "/words.json", "/assets/none"]:
        found = server.ask(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        if found.headers["content-type"].startswith("text/html"):
            page = Markup()
            page.feed(found.text)
            assert not page.bad, path
            assert len(page.ids) == len(set(page.ids)), path


def test_a_hostile_name_is_text(server):
    page = server.ask("/").text
    assert "&lt;img src=x onerror=alert(1)&gt;" in page and "<img" not in page
    assert "esc⟨ESC⟩[31m⟨U+202E⟩" in page and "\x1b" not in page
    report = server.ask(f"/run/{server.id('esc⟨ESC⟩[31m⟨U+202E⟩')}/data").text
    assert "⟨ESC⟩" in report and "\\u001b" not in report and "\u202e" not in report


def test_samples_are_shown_as_text_and_only_those_of_the_folder(server):
    where = f"/run/{server.id('sampled')}/rollouts"
    page = server.ask(where).text
    assert "96 samples of 3 steps (20 to 60)" in page and "kept outside" not in page
    assert "shown &lt;img src=x onerror=alert(1)&gt;⟨ESC⟩[31m" in page
    assert page.count('class="card rollout"') == 10 and "g3" in page
    group = server.ask(f"{where}?show=group&group=60/g1").text
    assert group.count('class="card rollout"') == 8
    assert "no samples of step 33" in server.ask(f"{where}?show=top&step=33").text
    assert "33 步" in server.ask(f"{where}?show=top&step=33&lang=zh").text
    assert "Nothing found" in server.ask(f"{where}?show=search&text=nobody").text
    assert "It is" not in server.ask(f"/run/{server.id('collapse')}/rollouts").text


def test_numbers_of_an_address_may_be_anything(server):
    for odd in ("²", "-", "9" * 5000, "--1", "1e9", "%00", "٣"):
        where = quote(odd, safe="%")
        assert server.ask(f"/?page={where}").status == 200
        run = server.id("sampled")
        assert server.ask(f"/run/{run}/rollouts?show=top&step={where}").status == 200
        assert server.ask(f"/run/{run}/rollouts?show=diff&before={where}&after=20").status == 200


def test_samples_that_take_long_are_waited_for_by_the_page(server, monkeypatch):
    monkeypatch.setattr(view, "PATIENCE", 0.0)
    assert "data-wait" in server.ask(f"/run/{server.id('fine')}/rollouts").text
    monkeypatch.undo()
    assert "No samples lie beside" in server.ask(f"/run/{server.id('fine')}/rollouts").text


def test_two_runs_side_by_side(server):
    page = server.ask(f"/compare?a={server.id('collapse')}&b={server.id('sampled')}").text
    assert "Where they part" in page and page.count("<polyline") > 4
    assert server.ask(f"/compare?a={server.id('collapse')}&b=000000000000").status == 404


def test_alerts_are_acknowledged_and_taken_back(server):
    def waiting():
        return int(re.search(r"Waiting for somebody \((\d+)\)", server.ask("/alerts").text)[1])

    before = waiting()
    alert = re.search(r'name="alert" value="(\w+)"', server.ask("/alerts").text)[1]
    assert before and json.loads(server.ask("/alerts/count.json").text)["open"] == before
    assert server.post("/alerts/acknowledge", alert=[alert, "unknown"]).status == 303
    assert waiting() == before - 1
    assert json.loads(server.ask("/alerts/count.json").text)["open"] == before - 1
    server.post("/alerts/acknowledge", alert=alert, undo="1")
    assert waiting() == before


def test_the_ledger_is_told_in_words(server):
    page = server.ask("/ledger?lang=zh").text
    assert "救回来了" in page and "熵崩塌" in page and "&lt;img src=x" in page


def test_failures_are_explained(server):
    assert f'href="/run/{server.id("collapse")}"' in server.ask("/failures/entropy-collapse").text
    assert 'href="/failures/weight-sync-failure"' in server.ask("/failures/entropy-collapse").text
    assert all(f"/failures/{slug}" in server.ask("/failures").text for slug in cards())


def test_the_course_is_answered_by_forms(server):
    first = server.ask("/course/pair-1").text
    assert "What klinic itself says" not in first and "plunges" not in first  # you judge first
    assert server.post("/course/pair-1", do="answer").status == 400
    server.post("/course/pair-1", do="hint")
    assert "Do not look at the reward again" in server.ask("/course/pair-1").text
    wrong = {"answer": ["too-easy", "too-easy"], "do": "answer"}
    assert server.post("/course/pair-1", **wrong).headers["location"].startswith("/course/pair-1?")
    assert 'class="verdict-said caution"' in server.ask("/course/pair-1").text
    server.post("/course/pair-1", do="answer", answer=["entropy-collapse", "weight-sync-failure"])
    told = server.ask("/course/pair-1").text
    assert 'class="verdict-said healthy"' in told and "What klinic itself says" in told
    for scene in range(1, 7):  # the same choices in each: they give nothing away
        page = f"/course/scene-{scene}"
        assert 'name="mind"' in server.ask(page).text
        given = {"answer": "healthy", "mind": "adv_std"}
        assert server.post(page, do="answer", **given).status == 303
        assert "verdict-said" in server.ask(page).text
    server.post("/course/quiz-7", do="answer", answer=["a"])
    assert "done" in server.ask("/course").text
    server.post("/course/read", do="forget")
    assert "What klinic itself says" not in server.ask("/course/pair-1").text


def test_bodies_are_small(server):
    own = {"Host": "localhost", "Origin": "http://localhost"}
    assert server.ask("/alerts/acknowledge", "POST", b"x" * 70_000, **own).status == 413
    chunks = (b"alert=" + b"y" * 9000 for _ in range(10))
    form = {"Content_Type": "application/x-www-form-urlencoded", **own}
    assert server.ask("/alerts/acknowledge", "POST", chunks, **form).status == 413
    assert server.ask("/", "POST", "", **own).status == 405


def test_another_bind_asks_for_the_token(tmp_path):
    log(tmp_path / "runs" / "a", 5)
    more = {"state": tmp_path / "s.sqlite", "bound": "0.0.0.0", "token": "right"}
    with serving(tmp_path / "runs", hosts=("proxy.example",), **more) as server:
        for path in ("/", "/events", "/assets/live.mjs", "/?token=wrong", "/?token="):
            assert server.ask(path).status == 401
        assert server.ask("/", Cookie=f"klinic-{server.port}=wrong").status == 401
        first = server.ask("//evil.example/x?token=right&q=a%0d%0a")
        assert first.status == 303 and first.headers["location"] == "/evil.example/x?q=a%0D%0A"
        cookie = first.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        own = {"Cookie": cookie.partition(";")[0]}
        assert server.ask("/", **own).status == 200
        assert server.ask("/", Host="proxy.example", **own).status == 200
        assert server.ask("/", Host="192.168.0.7:99", **own).status == 200
        assert server.ask("/", Host="evil.example", **own).status == 421


def test_the_address_names_what_a_browser_can_open():
    assert address("127.0.0.1", 80, "") == "http://127.0.0.1:80/"
    assert address("::1", 8017, "t") == "http://[::1]:8017/?token=t"
    assert address("0.0.0.0", 8017, "t") == f"http://{socket.gethostname()}:8017/?token=t"


def test_it_survives_growth_shrinking_deletion_and_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr(places_module, "SCAN", 0.5)
    folder, state = tmp_path / "runs", tmp_path / "s.sqlite"
    kept, cut, gone = (log(folder / name, 60) for name in ("kept", "cut", "gone"))
    before = listing(folder)
    with serving(folder, state=state) as server:
        server.until(lambda rows: len(rows) == 3)
        assert listing(folder) == before  # nothing is written where runs lie
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        connection.request("GET", "/events")
        stream, run = connection.getresponse(), server.id("kept")
        while b"hello" not in stream.readline():
            pass
        server.until(lambda rows: not server.work.board.waiting)
        with open(kept, "a") as more:
            more.write(line(61))
        began = time.monotonic()
        while run not in stream.readline().decode():
            assert time.monotonic() - began < 5
        assert json.loads(server.ask(f"/run/{run}/data").text)["run"]["last"] == 61
        connection.close()
        cut.write_text("".join(map(line, range(1, 21))))
        shutil.rmtree(gone.parent)
        server.until(lambda rows: set(rows) == {"kept", "cut"})
        answer = f"/run/{server.id('cut')}/data"
        server.until(lambda rows: json.loads(server.ask(answer).text)["run"]["last"] == 20)
        log(folder / "new", 20)
        server.until(lambda rows: "new" in rows and not server.work.board.waiting)
    with serving(folder, state=state) as server:
        server.until(lambda rows: set(rows) == {"kept", "cut", "new"}, 3)
        assert not server.work.board.waiting and not server.work.pools  # nothing is read again
        assert json.loads(server.ask(answer).text)["run"]["last"] == 20


def started(*words, cwd):
    environment = {**os.environ, "KLINIC_LANG": "en", "XDG_STATE_HOME": str(cwd)}
    return subprocess.Popen(
        [sys.executable, "-m", "klinic", "serve", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def test_from_the_shell(tmp_path):
    log(tmp_path / "runs" / "a", 5)
    with started(tmp_path / "runs", "--port", 0, "--token", cwd=tmp_path) as process:
        where = process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(\?token=[\w-]{32})", where)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", int(found[1]))) as asked:
            asked.request("GET", f"/{found[2]}")
            assert asked.getresponse().status == 303
        with started(tmp_path / "runs", "--port", found[1], cwd=tmp_path) as taken:
            assert "Address already in use" in taken.communicate(timeout=30)[1]
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, taken.returncode) == (0, 2)
    assert "Traceback" not in said and "Ctrl-C" in said
    assert (tmp_path / "klinic" / "serve.sqlite").stat().st_mode & 0o077 == 0
    with started(tmp_path / "nowhere", cwd=tmp_path) as missing:
        assert "no such file or folder" in missing.communicate(timeout=30)[1]
    assert missing.returncode == 2


def test_without_its_libraries_it_says_what_to_install(tmp_path):
    code = "import sys; sys.modules['starlette'] = None; sys.argv = ['klinic', 'serve', '.']; from klinic.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'klinic[serve]'" in done.stderr


def test_both_languages_say_the_same_and_templates_ask_for_nothing_else():
    english, chinese = sentences("serve", "en"), sentences("serve", "zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert set(re.findall(r"{\w+}", text)) == set(re.findall(r"{\w+}", chinese[key])), key
    package = Path(klinic.__file__).parent / "serve"
    asked = set()
    for template in package.glob("templates/*.html"):
        asked |= set(re.findall(r"\bt\('([\w.]+)'[,)]", template.read_text()))
    assert asked <= english.keys()
    assert {f"family.{card.family}" for card in cards().values()} <= english.keys()
