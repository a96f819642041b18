"""``klinic serve DIR...``: the local web app."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option, map_option, trainer_option
from klinic.errors import BadUsage, MissingExtra

PORT = 8017  # our choice; no well-known service uses it


@click.command("serve")
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="the address to listen on; any other than this machine's own asks visitors for a token",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="the port to listen on; 0 takes a free one",
)
@click.option(
    "--token",
    "asks",
    is_flag=True,
    help="ask for the token on 127.0.0.1, too: other users of this machine can reach it",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="another name by which browsers reach the server, such as a proxy's; asks for the token (repeatable)",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="what is remembered between starts (default: ~/.local/state/klinic/serve.sqlite)",
)
@click.option("--open", "opened", is_flag=True, help="open the page in this machine's browser")
@map_option
@trainer_option
@lang_option
def command(
    paths: tuple[Path, ...],
    host: str,
    port: int,
    asks: bool,
    names: tuple[str, ...],
    state: Path | None,
    opened: bool,
    mapping: tuple[str, ...],
    trainer: str | None,
    lang: str | None,
) -> int:
    """Show runs in a browser: worst first, each with its report, and all of it up to date while they grow.

    DIR is a folder of runs, of any format klinic diagnose reads, or one log; nothing is ever written to it. The address is printed;
    Ctrl-C ends the server. Over ssh: ssh -L 8017:localhost:8017 HOST, and the address works at home.
    """
    try:
        import jinja2  # noqa: F401
        import python_multipart  # noqa: F401
        import sse_starlette  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "the web app is made with Starlette", "klinic serve", "pip install 'klinic[serve]'"
        ) from None
    import gc

    gc.enable()  # a server lives long
    from klinic.read import parse_mapping
    from klinic.serve.places import Places
    from klinic.serve.run import serve

    options = {"mapping": parse_mapping(mapping), "trainer": trainer}
    places = Places(paths)
    with _listening(host, port) as listening:
        serve(places, listening, host, asks, names, state, language(lang), options, opened)
    return 0


def _listening(host: str, port: int) -> socket.socket:
    """A socket bound to the address. Raises BadUsage where that cannot be."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
    except OSError as trouble:
        raise BadUsage(
            f"cannot be listened on: {trouble.strerror}", host, "try --host 127.0.0.1"
        ) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as trouble:
        made.close()
        raise BadUsage(
            f"cannot be listened on: {trouble.strerror}",
            f"{host}:{port}",
            "name another one with --port; --port 0 takes a free one",
        ) from None
    return made
