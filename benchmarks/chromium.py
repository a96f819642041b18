"""How Debian's Chromium is started for benchmarks and tests: without a network of its own."""

from __future__ import annotations

import shutil

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def where() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")
