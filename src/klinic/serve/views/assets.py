"""Modules, styles and the sentences that the modules speak."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from klinic.serve.page import language, script_words

FOLDER = Path(__file__).parents[1] / "assets"
KINDS = {
    ".mjs": "text/javascript",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@cache
def _assets() -> dict[str, tuple[bytes, str, str]]:
    """Name -> its bytes, kind and tag; the package's own, and the report's; so no name leads elsewhere."""
    from klinic.render.report.page import SCRIPTS, STYLES, joined

    files = {"report.js": joined(SCRIPTS).encode(), "report.css": joined(STYLES).encode()}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in KINDS:
            files[path.name] = path.read_bytes()
    return {
        name: (data, KINDS[Path(name).suffix], f'"{sha256(data).hexdigest()[:16]}"')
        for name, data in files.items()
    }


async def asset(request: Request) -> Response:
    """One file."""
    found = _assets().get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    data, kind, tag = found
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=kind, headers=headers)


async def words(request: Request) -> Response:
    """The modules' sentences."""
    return JSONResponse(script_words(language(request)))


routes = [Route("/assets/{name}", asset), Route("/words.json", words)]
