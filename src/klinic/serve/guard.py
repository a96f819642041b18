"""Who may ask, and what the answer may do: Host, Origin, token, size of the body, and the headers that bind the browser."""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY = 64 << 10  # bytes of a request's body: a form of the course, no upload (our choice)
SAFE = ("GET", "HEAD")
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cache-control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Whether a server bound to ``host`` is reached from this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """In front of the app. bound: the address the server listens on. token: what a visitor must bring, "" for none.

    hosts: names by which the server may be called, besides its own address. A page of another site can make a browser send
    a request here, under a name that it has pointed here; it can choose neither Host nor Origin, and sees no cookie.
    """

    def __init__(self, app: App, bound: str, token: str = "", hosts: tuple[str, ...] = ()) -> None:
        self.app, self.token = app, token
        self.anywhere = not is_loopback(bound)
        self.names = {*LOOPBACK, bound.lower(), *(host.lower() for host in hosts)}
        if self.anywhere:
            self.names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, refuse, or hand on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets here
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(send, *refused)
            return
        asked = b"token=" in scope["query_string"]
        if self.token and (asked or not self._known(scope, headers)):
            await self._let_in(scope, send)
            return

        async def bound(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(
                        (k.encode(), v.encode())
                        for k, v in HEADERS.items()
                        if k.encode() not in own
                    ),
                ]
            await send(message)

        if scope["method"] not in SAFE:
            body = await _whole(receive)
            if body is None:
                await _answer(send, 413, "the body is too large")
                return
            receive = _replayed(body, receive)
        await self.app(scope, receive, bound)

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        if not self._named(headers.get("host", "")):
            return 421, "this server is not known by that name"
        unsafe = scope["method"] not in SAFE
        origin = headers.get("origin")
        own = f"{scope['scheme']}://{headers.get('host', '')}"
        if origin is not None and origin.lower() != own.lower():
            return 403, "a page of another site may not ask"
        if headers.get("sec-fetch-site") == "cross-site" and (
            unsafe or headers.get("sec-fetch-mode") != "navigate"
        ):
            return 403, "a page of another site may not ask"
        if unsafe and origin is None and headers.get("sec-fetch-site") != "same-origin":
            return 403, "the request does not say where it comes from"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > BODY:
            return 413, "the body is too large"
        return None

    def _named(self, host: str) -> bool:
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        else:
            name = name.partition(":")[0]
        if name in self.names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.anywhere  # a bare address is no name that somebody could point here

    def _cookie(self, scope: Scope) -> str:
        """Browsers keep cookies by name of the host, not by port."""
        return f"klinic-{(scope.get('server') or ('', 0))[1]}"

    def _known(self, scope: Scope, headers: dict[str, str]) -> bool:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        found = cookies.get(self._cookie(scope))
        return found is not None and hmac.compare_digest(found.value.encode(), self.token.encode())

    async def _let_in(self, scope: Scope, send: Send) -> None:
        """Exchange the token in the address for a cookie; the address goes on without it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in query if name == "token"), "")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            await _answer(
                send, 401, "the token is missing: use the address that klinic serve printed"
            )
            return
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # One slash, and everything odd escaped: "//host" and "/\\host" are other hosts to a browser.
        where = "/" + quote(scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie(scope)}={self.token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"
        more = [(b"location", where.encode()), (b"set-cookie", cookie.encode())]
        await _answer(send, 303, "", more)


async def _whole(receive: Receive) -> MutableMapping[str, Any] | None:
    """The request's body in one message; None where more comes than is allowed, whatever was announced."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return message
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > BODY:
            return None
    return {"type": "http.request", "body": body, "more_body": False}


def _replayed(first: MutableMapping[str, Any], receive: Receive) -> Receive:
    waiting = [first]

    async def replayed() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return replayed


async def _answer(
    send: Send, status: int, text: str, more: list[tuple[bytes, bytes]] | None = None
) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *(more or [])]
    headers += [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode() if text else b""})
