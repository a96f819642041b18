"""klinic's own settings: ``klinic.toml``, or ``[tool.klinic]`` in pyproject.toml, in this folder or one above.

lang = "zh"                      # en or zh
fail_on = "stop"                 # exit 1 from this severity on: stop, act or caution
skip = ["plateau"]               # failures that are never reported
[map]                            # the log's own key for a metric
entropy = "my/key"
[thresholds.kl-runaway]          # klinic explain kl-runaway lists a failure's thresholds
surge = 8
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from klinic.compiled import parsed
from klinic.errors import BadUsage, did_you_mean

FILE, SHARED_FILE = "klinic.toml", "pyproject.toml"


class Settings(msgspec.Struct, frozen=True):
    """What a user chose once for a project. thresholds: of each failure, by lower-case name. where: the file read."""

    lang: Literal["en", "zh"] | None = None
    fail_on: Literal["stop", "act", "caution"] = "act"
    skip: tuple[str, ...] = ()
    map: dict[str, str] = {}
    thresholds: dict[str, dict[str, float]] = {}
    where: str = ""


@cache
def settings(folder: Path | None = None) -> Settings:
    """The nearest file's settings, from ``folder`` (default: the present one) upwards; the defaults where there is none.

    Raises BadUsage for a file that is no TOML, an unknown key or a value of the wrong kind.
    """
    here = (folder or Path.cwd()).resolve()
    for place in (here, *here.parents):
        own, shared = place / FILE, place / SHARED_FILE
        if own.is_file():
            return _checked(_read(own), own)
        if shared.is_file():
            table = _read(shared).get("tool", {}).get("klinic")
            if table is not None:
                return _checked(table, shared)
    return Settings()


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return parsed(path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as trouble:
        raise BadUsage(
            f"cannot be read: {trouble}", str(path), "mend the file or move it away"
        ) from None


def _checked(table: dict[str, Any], path: Path) -> Settings:
    known = [name for name in Settings.__struct_fields__ if name != "where"]
    for name in table:
        if name not in known:
            raise BadUsage(
                f"unknown setting {name!r}",
                str(path),
                did_you_mean(name, known) or f"known: {', '.join(known)}",
            )
    try:
        return msgspec.convert({**table, "where": str(path)}, Settings)
    except msgspec.ValidationError as trouble:
        raise BadUsage(str(trouble), str(path), "klinic's README shows a klinic.toml") from None
