"""The report's file: markup, styles, scripts and data in one page that loads nothing and lets nothing be loaded."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

ASSETS = Path(__file__).parent.parent / "assets"
STYLES = ("uplot/uPlot.min.css", "report/report.css")
SCRIPTS = (
    "uplot/uPlot.iife.min.js",
    "report/data.js",
    "report/dom.js",
    "report/chart.js",
    "report/views.js",
    "report/verdict.js",
    "report/panels.js",
    "report/sections.js",
    "report/report.js",
)


@cache
def joined(names: tuple[str, ...]) -> str:
    """The text of several assets, one after the other."""
    return "\n".join((ASSETS / name).read_text(encoding="utf-8").strip() for name in names)


def page(documents: Sequence[dict[str, Any]], lang: str, title: str) -> str:
    """HTML of one page for one run or several. documents: ``report_data``'s, worst first."""
    style, script = joined(STYLES), joined(SCRIPTS)
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; "
        f"style-src 'sha256-{_hash(style)}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="{"zh-Hans" if lang == "zh" else "en"}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<div id="klinic-report" data-lang="{lang}"></div>
<noscript><p>This report draws its curves with JavaScript. 本报告用 JavaScript 画曲线。</p></noscript>
<script type="application/json" id="klinic-data">{_data(documents)}</script>
<script>{script}</script>
</body>
</html>
"""


def _data(documents: Sequence[dict[str, Any]]) -> str:
    text = json.dumps(list(documents), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Nothing in the data may end its element, or begin a comment or another script.
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
