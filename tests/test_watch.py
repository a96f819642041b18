"""Watching: each finding is told once, whatever grows, shrinks, fails or is killed in between."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import klinic
from klinic.errors import BadUsage
from klinic.watch import edetector
from klinic.watch.loop import Watch
from klinic.watch.state import Memory
from klinic.watch.targets import Command, StopProcess, Touch, Untaken, Webhook, targets

DEMO = Path(klinic.__file__).parent / "demo" / "trl-entropy-collapse" / "trainer_state.json"
ROWS = json.loads(DEMO.read_text())["log_history"]
KLINIC = [sys.executable, "-m", "klinic"]


def healthy(steps, seed=0):
    rnd = random.Random(seed)
    return [
        {
            "step": s,
            "reward": 0.3 + s / 900 + rnd.gauss(0, 0.02),
            "entropy": 1.8 - s / 500 + rnd.gauss(0, 0.02),
            "kl": 0.001 + s / 9000 + abs(rnd.gauss(0, 0.0005)),
            "completions/mean_length": 80 + s / 9 + rnd.gauss(0, 2),
        }
        for s in range(1, steps + 1)
    ]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def append(path, rows):
    with path.open("a") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


@contextmanager
def watching(tmp_path, *paths, **options):
    told = []
    watch = Watch(
        [Path(p) for p in paths], on_alert=told.append, state=tmp_path / "state.sqlite", **options
    )
    with closing(watch):
        yield watch, told


def grow(path, rows, look, at_once=7):
    for i in range(0, len(rows), at_once):
        append(path, rows[i : i + at_once])
        look()


def said(told):
    return [(a["state"], a["failure"]) for a in told]


def test_a_finding_is_told_once_although_the_watch_is_started_anew_at_every_look(tmp_path):
    path = tmp_path / "run" / "metrics.jsonl"
    path.parent.mkdir()
    told = []

    def look():
        with watching(tmp_path, path) as (watch, new):
            watch.once()
            told.extend(new)

    grow(path, ROWS, look)
    assert said(told)[0] == ("firing", "entropy-collapse")
    assert len({a["id"] for a in told}) == len(told)
    fired = [f for state, f in said(told) if state == "firing"]
    assert len(fired) == len(set(fired)), said(told)
    # The same in one go, without a restart.
    path.unlink()
    with watching(tmp_path / "other", path) as (watch, again):
        grow(path, ROWS, lambda: watch.look(all_of_them=True))
    assert [a["id"] for a in again] == [a["id"] for a in told]


def test_a_healthy_run_is_left_alone(tmp_path):
    path = tmp_path / "metrics.jsonl"
    with watching(tmp_path, path, alert_on="caution") as (watch, told):
        grow(path, healthy(300), lambda: watch.look(all_of_them=True), 13)
        (one,) = watch.runs.values()
        assert one.diagnosis.status == "healthy" and one.run.last == 300
    assert told == []


def test_what_is_over_is_told_and_may_come_again_after_the_cool_down(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    with watching(tmp_path, path, cool_down=0) as (watch, told):
        watch.look(all_of_them=True)
        assert ("firing", "entropy-collapse") in said(told)
        first = len(told)
        write(path, healthy(200))  # the file is another one now
        watch.look(all_of_them=True)
        append(path, [{**row, "step": row["step"] + 200} for row in healthy(40, 2)])
        watch.look(all_of_them=True)
        assert set(said(told[first:])) == {("resolved", f) for s, f in said(told[:first])}
        second = len(told)
        write(path, ROWS[:60])
        watch.look(all_of_them=True)
        write(path, ROWS)
        watch.look(all_of_them=True)
        again = [a for a in told[second:] if a["failure"] == "entropy-collapse"]
        assert again and again[0]["state"] == "firing"
        assert again[0]["id"] not in {a["id"] for a in told[:second]}


def test_a_run_that_has_ended_is_judged_once_more_and_what_is_possible_is_told(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS[:96:3])  # so few points that the collapse is only possible
    with watching(tmp_path, path) as (watch, told):
        watch.look(all_of_them=True)
        (one,) = watch.followed.known.values()
        before = [a["failure"] for a in told]
        one.grown_at -= 599
        watch.look(all_of_them=True)
        assert [a["failure"] for a in told] == before
        one.grown_at -= 2
        watch.look(all_of_them=True)
        after = [a["failure"] for a in told]
        watch.look(all_of_them=True)
    (run,) = watch.runs.values()
    present = {
        f.failure
        for f in run.diagnosis.findings
        if f.status == "present" and f.severity != "caution"
    }
    assert set(after) == present and [a["failure"] for a in told] == after
    assert len(after) > len(before)


def test_runs_that_start_later_and_folders_of_runs(tmp_path):
    later, many = tmp_path / "later.jsonl", tmp_path / "many"
    many.mkdir()
    with watching(tmp_path, later, many) as (watch, told):
        watch.look(all_of_them=True)
        assert watch.followed.missing == [later] and not watch.runs
        write(later, healthy(60))
        for name in ("a", "b"):
            (many / name).mkdir()
            write(many / name / "metrics.jsonl", ROWS if name == "b" else healthy(60))
        watch.followed.scanned = None
        watch.look(all_of_them=True)
        assert sorted(w.run.name for w in watch.runs.values()) == ["a", "b", "later"]
        assert {a["run"] for a in told} == {"b"}


def test_of_many_runs_the_old_ones_are_shown_and_not_told(tmp_path):
    for name in ("old", "new"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        write(tmp_path / "runs" / name / "metrics.jsonl", ROWS)
    yesterday = time.time() - 86400
    os.utime(tmp_path / "runs" / "old" / "metrics.jsonl", (yesterday, yesterday))
    with watching(tmp_path, tmp_path / "runs") as (watch, told):
        watch.look(all_of_them=True)
        assert {a["run"] for a in told} == {"new"} and len(watch.runs) == 2
        assert all(w.diagnosis.status == "failing" for w in watch.runs.values())
    with watching(tmp_path, tmp_path / "runs" / "old") as (watch, told):
        watch.look(all_of_them=True)
    with watching(tmp_path / "alone", tmp_path / "runs" / "old") as (watch, again):
        watch.look(all_of_them=True)
    assert not told and again, "asked for by name it is told, unless it was seen before"


def test_a_log_that_cannot_be_read_now_is_read_later(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b"\0" * 4096)
    with watching(tmp_path, path) as (watch, told):
        watch.look(all_of_them=True)
        (one,) = watch.followed.known.values()
        assert one.trouble is not None
        write(path, ROWS)
        watch.look(all_of_them=True)
        assert one.trouble is None and told


def test_a_log_that_is_rotated_is_one_run(tmp_path):
    path = tmp_path / "train.log"
    write(path, ROWS[:100])
    with watching(tmp_path, path) as (watch, told):
        watch.look(all_of_them=True)
        assert said(told) == [("firing", "entropy-collapse")]
        path.rename(tmp_path / "train.log.1")
        watch.look(all_of_them=True)  # in between there is none
        write(path, ROWS[100:])
        watch.followed.scanned = None
        watch.look(all_of_them=True)
    (one,) = watch.runs.values()
    assert one.run.first == 1 and one.run.last == ROWS[-1]["step"]
    assert "resolved" not in {a["state"] for a in told}


def test_a_folder_whose_files_grow_is_followed(tmp_path):
    from tracker_databases import mlflow_folder

    points = {
        key: [(1000 * row["step"], row[key], row["step"]) for row in ROWS if key in row]
        for key in ("reward", "entropy", "kl", "frac_reward_zero_std")
    }
    run = mlflow_folder(
        tmp_path / "mlruns" / "1" / ("a" * 32), {key: found[:40] for key, found in points.items()}
    )
    with watching(tmp_path, tmp_path / "mlruns") as (watch, told):
        watch.look(all_of_them=True)
        assert len(watch.runs) == 1 and not told
        for key, found in points.items():
            with (run / "metrics" / key).open("a") as out:
                out.writelines(f"{time} {value} {step}\n" for time, value, step in found[40:])
        watch.look(all_of_them=True)
        assert ("firing", "entropy-collapse") in said(told)


def test_a_database_is_followed(tmp_path):
    from tracker_databases import trackio_database, trackio_log

    rows = [("r", "x", n, {**row, "train/global_step": row["step"]}) for n, row in enumerate(ROWS)]
    rows = [(*row[:3], {k: v for k, v in row[3].items() if k != "step"}) for row in rows]
    place = tmp_path / "p.db"
    db = trackio_database(place, rows[:40])
    with watching(tmp_path, place) as (watch, told):
        watch.look(all_of_them=True)
        assert not told
        trackio_log(db, rows[40:])  # in the write-ahead log: the database itself does not change
        watch.look(all_of_them=True)
        assert ("firing", "entropy-collapse") in said(told)
    db.close()


def test_the_detector_keeps_its_promise_where_one_step_in_ten_is_outside():
    rnd, level = random.Random(1), 200.0
    waits = []
    for _ in range(200):
        e, n = 0.0, 0
        while True:
            n += 1
            e, reached = edetector.advance(e, [rnd.random() < 0.1], level)
            if reached is not None:
                break
        waits.append(n)
    assert sum(waits) / len(waits) > level
    e, reached = edetector.advance(0.0, [True] * 10, level)
    assert reached == 2, "three steps in a row outside: 6, 42, 258"


# Targets


@contextmanager
def server(answers=()):
    """A real HTTP server: what it was sent; the first answers are those given, then 200."""
    got, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code = left.pop(0) if left else 200
            got.append((code, self.headers["Idempotency-Key"], body))
            self.send_response(code)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/hook", got
        finally:
            http.shutdown()
            thread.join()


def soon(what, limit=20.0):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_a_webhook_that_fails_gets_the_alert_later_and_in_order(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    with server([500, 503]) as (url, got):
        with watching(tmp_path, path, targets=[Webhook(url)]) as (watch, told):
            ended = threading.Event()
            thread = threading.Thread(target=watch.run, args=(ended.is_set,))
            thread.start()
            soon(lambda: told and len([g for g in got if g[0] == 200]) == len(told))
            ended.set()
            thread.join()
        assert [g[0] for g in got][:3] == [500, 503, 200]
        assert [g[1] for g in got if g[0] == 200] == [a["id"] for a in told]
        assert got[0][1] == got[1][1] == got[2][1]
        assert got[-1][2]["schema_version"] == 1 and got[-1][2]["first_action"]


def test_an_alert_waits_for_a_server_that_is_not_there(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    troubles = []
    hook = Webhook("http://127.0.0.1:9/nobody")
    with watching(tmp_path, path, targets=[hook], on_trouble=lambda *t: troubles.append(t)) as (
        watch,
        told,
    ):
        watch.once()
        assert told and troubles and watch.memory.waiting(hook.name) == len(told)


@pytest.mark.filterwarnings("ignore")  # the libraries' own
def test_mail_through_apprise(tmp_path):
    pytest.importorskip("apprise", reason="the watch extra is not installed")
    import socket

    from aiosmtpd.controller import Controller
    from aiosmtpd.handlers import Message

    class Box(Message):
        def __init__(self):
            super().__init__()
            self.got = []

        def handle_message(self, message):
            self.got.append(message)

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    box = Box()
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        path = tmp_path / "metrics.jsonl"
        write(path, ROWS)
        url = f"mailto://127.0.0.1:{port}?from=a@example.org&to=b@example.org&mode=insecure"
        with watching(tmp_path, path, targets=targets(notify=[url]), lang="zh") as (watch, told):
            watch.once()
            assert watch.memory.waiting(watch.targets[0].name) == 0
        assert len(box.got) == len(told)
        parts = [p.get_payload(decode=True) for p in box.got[0].walk() if not p.is_multipart()]
        assert "只改一处：--temperature 1.1" in b"".join(parts).decode()
    finally:
        controller.stop()


def alert_of(severity="stop", state="firing"):
    return {
        "id": "x",
        "run": "r",
        "failure": "nan",
        "state": state,
        "severity": severity,
        "text": "nan: r\nstop",
    }


def test_a_command_gets_the_alert_and_its_exit_code_counts(tmp_path):
    out = tmp_path / "out.json"
    Command(f"cat > {out}; test $KLINIC_FAILURE = nan").take(alert_of())
    assert json.loads(out.read_text())["id"] == "x"
    with pytest.raises(Untaken, match="exit 3 no"):
        Command("echo no >&2; exit 3").take(alert_of())


def test_a_file_is_touched_and_a_process_stopped_from_a_severity_on(tmp_path):
    trainer = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        touch, stop = Touch(tmp_path / "STOP"), StopProcess(trainer.pid)
        for mild in (alert_of("act"), alert_of("stop", "resolved")):
            touch.take(mild)
            stop.take(mild)
        assert not (tmp_path / "STOP").exists() and trainer.poll() is None
        touch.take(alert_of())
        stop.take(alert_of())
        assert (tmp_path / "STOP").read_text() == "nan: r\nstop\n"
        assert trainer.wait(10) == -signal.SIGTERM
        stop.take(alert_of())  # it is gone: nothing to do, and no other process is hit
    finally:
        trainer.kill()
    with pytest.raises(BadUsage, match="no such process"):
        StopProcess(trainer.pid)


# From a shell


def test_once_from_a_shell(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, ROWS)
    command = [*KLINIC, "watch", path, "--once", "--state", tmp_path / "s", "--lang", "en"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "entropy-collapse" in done.stdout and not done.stderr
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 1 and again.stdout == ""
    for wrong in (
        ["-"],
        ["--webhook", "nowhere"],
        ["--stop-pid", "999999999"],
        ["--notify", "what"],
    ):
        done = subprocess.run([*command, *wrong], capture_output=True, text=True)
        assert done.returncode == 2 and "Traceback" not in done.stderr, wrong


def test_a_folder_without_a_log_says_so_in_the_language_asked_for(tmp_path):
    (tmp_path / "empty").mkdir()
    command = [*KLINIC, "watch", tmp_path / "empty", "--once", "--state", tmp_path / "s"]
    for lang, word in (("en", "no log in this folder"), ("zh", "目录里没有日志")):
        done = subprocess.run([*command, "--lang", lang], capture_output=True, text=True)
        assert done.returncode == 0 and word in done.stderr, done.stderr


def test_one_watch_at_a_time_uses_a_state(tmp_path):
    with watching(tmp_path, tmp_path / "x"), pytest.raises(BadUsage, match="another watch"):
        Watch([tmp_path / "x"], state=tmp_path / "state.sqlite")


def test_killed_in_the_middle_no_alert_is_lost(tmp_path):
    path = tmp_path / "metrics.jsonl"
    rnd = random.Random(5)
    with server() as (url, got):
        command = [*KLINIC, "watch", path, "--state", tmp_path / "s", "--webhook", url]
        command += ["--interval", "0.1", "--format", "json"]
        kills = 0
        for i in range(0, len(ROWS), 35):
            watch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            append(path, ROWS[i : i + 35])
            time.sleep(0.4 + rnd.random())
            os.kill(watch.pid, signal.SIGKILL)
            kills += watch.wait() == -signal.SIGKILL
        assert kills == 5
        last = subprocess.run([*command, "--once"], capture_output=True, text=True)
        assert last.returncode == 1
        with closing(Memory(tmp_path / "s")) as memory:
            ids = [row[0] for row in memory.db.execute("SELECT id FROM alerts ORDER BY number")]
        assert ids and {g[1] for g in got} == set(ids)
