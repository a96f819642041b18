"""The server itself: who must bring a token, the address that is printed, and uvicorn until it is interrupted."""

from __future__ import annotations

import secrets
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from klinic.serve.guard import is_loopback
from klinic.serve.places import Places
from klinic.serve.store import Store, home
from klinic.text import say_in


def serve(
    places: Places,
    listening: socket.socket,
    host: str,
    asks: bool,
    names: Sequence[str],
    state: Path | None,
    lang: str,
    options: dict[str, Any],
    opened: bool,
) -> None:
    """Until it is interrupted. listening: a bound socket. asks: for the token on any address. state: the SQLite file."""
    from klinic.serve.app import app
    from klinic.watch.state import home as watch_home

    place = (state or home()).absolute()
    store = Store(place)
    needed = asks or bool(names) or not is_loopback(host)
    token = store.once("token", secrets.token_urlsafe(24)) if needed else ""
    store.close()
    made = app(
        places,
        place,
        host,
        token=token,
        hosts=tuple(names),
        lang=lang,
        options=options,
        watch_state=watch_home(),
    )
    where = address(host, listening.getsockname()[1], token)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # as below: an end in order is no failure
    with suppress(KeyboardInterrupt):  # uvicorn has ended in order, and says again what ended it
        uvicorn_server(made, lambda: _told(where, lang, opened)).run(sockets=[listening])


def address(host: str, port: int, token: str) -> str:
    """What to open; an address that stands for all of a machine's is said by the machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def uvicorn_server(made: Any, ready: Callable[[], None]) -> Any:
    """A uvicorn server of the app that says when it answers, and writes no line a request: addresses may hold the token."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            made.app.state.board.end()  # the streams of events, which would be waited for
            await super().shutdown(sockets)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    return Server(
        uvicorn.Config(
            made,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
            limit_concurrency=256,
            h11_max_incomplete_event_size=32 << 10,
        )
    )


def _told(where: str, lang: str, opened: bool) -> None:
    print(where, flush=True)
    print(say_in("serve", "printed", lang), file=sys.stderr, flush=True)
    if opened:
        webbrowser.open(where)
