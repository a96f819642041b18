"""A server of the web app in this process, over a real socket, and small logs for it to show."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

from klinic.serve.app import app
from klinic.serve.places import Places
from klinic.serve.run import uvicorn_server


class Server:
    """A server of some folders, in this process; its background process is a real one."""

    def __init__(self, *roots: Path, state: Path, **more):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", more.pop("port", 0)))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        made = app(
            Places(roots), state, more.pop("bound", "127.0.0.1"), progress=state.with_name("course.json"), **more
        )  # fmt: skip
        self.work = made.app.state.work
        ready = threading.Event()
        self.server = uvicorn_server(made, ready.set)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        assert ready.wait(20)

    def stop(self):
        self.server.should_exit = True
        self.thread.join(20)
        self.socket.close()
        assert not self.thread.is_alive()

    def ask(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(
                method, path, body, {k.replace("_", "-"): v for k, v in headers.items()}
            )
            answer = connection.getresponse()
            answer.text = answer.read().decode()
            return answer
        finally:
            connection.close()

    def post(self, path, **form):
        return self.ask(
            path, "POST", urlencode(form, doseq=True), Content_Type="application/x-www-form-urlencoded",
            Origin=self.url, Host=f"127.0.0.1:{self.port}",
        )  # fmt: skip

    def rows(self):
        """Run -> status, as the list shows them."""
        found = re.findall(
            r'<li class="(\w+)">.*?href="/run/(\w+)">([^<]*)<', self.ask("/?part=rows").text, re.S
        )
        return {name: (status, run) for status, run, name in found}

    def until(self, holds, seconds=40.0):
        end = time.monotonic() + seconds
        while not (found := holds(self.rows())):
            assert time.monotonic() < end, self.rows()
            time.sleep(0.1)
        return found

    def id(self, name):
        return self.rows()[name][1]


@contextlib.contextmanager
def serving(*roots, state, **more):
    server = Server(*roots, state=state, **more)
    try:
        yield server
    finally:
        server.stop()


def log(folder: Path, steps: int, name: str = "train.jsonl", **more: float) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w") as stream:
        for step in range(1, steps + 1):
            stream.write(line(step, **more))
    return folder / name


def line(step: int, **more: float) -> str:
    row = {
        "step": step,
        "reward": 0.3 + 0.001 * step,
        "entropy": 1.5,
        "kl": 0.01,
        "response_length": 200.0,
    }
    return json.dumps(row | more) + "\n"  # fmt: skip
