"""A run's settings as TensorBoard keeps them: a text tag with JSON, YAML or a table, or the hparams plugin."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

from klinic.sources.rows import flatten
from klinic.sources.wire import BYTES, FIXED64, VARINT, fields, text

# transformers writes "args" (and "model_config", whose temperature is not the trainer's); CleanRL "hyperparameters".
SETTINGS = re.compile(
    r"^(.*/)?(args|arguments|training_args|config|configuration|run_config|train_config|hparams|params|hyper_?-?parameters)$",
    re.IGNORECASE,
)
TEXT_LIMIT = 1 << 20  # characters; a longer text is a sample, not a configuration
FENCE = re.compile(r"^\s*```\w*\s*\n|\n\s*```\s*$")
ROW = re.compile(r"^\|([^|]+)\|(.*)\|\s*$", re.MULTILINE)


def holds_settings(tag: str) -> bool:
    """Whether a text tag is named like a configuration."""
    return bool(SETTINGS.match(tag.removesuffix("/text_summary")))


def settings_in(said: str) -> dict[str, Any]:
    """Leaves {"a.b": value} of a configuration written as text; empty where it is none."""
    if len(said) > TEXT_LIMIT:
        return {}
    said = FENCE.sub("", said.replace("<br>", "\n"))
    table = ROW.findall(said)
    if len(table) > 2:
        rows = [(name.strip(), value.strip()) for name, value in table[1:]]
        return {name: _plain(value) for name, value in rows if not set(name) <= set("-: ")}
    try:
        document = json.loads(said)
    except ValueError:
        import yaml

        try:
            document = yaml.safe_load(said)
        except yaml.YAMLError:
            return {}
    if not isinstance(document, dict):
        return {}
    return {str(key).replace("/", "."): value for key, value in flatten(document)}


def hparams(content: bytes) -> dict[str, Any]:
    """Settings of the hparams plugin: HParamsPluginData.session_start_info 3 {hparams 1: a map of protobuf Values}."""
    found: dict[str, Any] = {}
    for number, kind, a, b in fields(content, 0, len(content)):
        if number != 3 or kind != BYTES:
            continue
        for inner, sort, c, d in fields(content, a, b):
            if inner == 1 and sort == BYTES:
                name, value = "", None
                for part, how, e, f in fields(content, c, d):
                    if part == 1 and how == BYTES:
                        name = text(content, e, f)
                    elif part == 2 and how == BYTES:
                        value = _value(content, e, f)
                if name and value is not None:
                    found[name.replace("/", ".")] = value
    return found


def _value(data: bytes, begin: int, end: int) -> Any:
    """A google.protobuf.Value: number 2, string 3, bool 4."""
    for number, kind, a, b in fields(data, begin, end):
        if number == 2 and kind == FIXED64:
            value = struct.unpack_from("<d", data, a)[0]
            return int(value) if value == value // 1 and abs(value) < 1e15 else value
        if number == 3 and kind == BYTES:
            return _plain(text(data, a, b))
        if number == 4 and kind == VARINT:
            return bool(a)
    return None


def _plain(value: str) -> Any:
    """A word of a table as YAML would read it."""
    if value in ("True", "False"):
        return value == "True"
    if value in ("None", "null", ""):
        return None
    try:
        return float(value) if re.search(r"[.eEn]", value) else int(value)
    except ValueError:
        return value
