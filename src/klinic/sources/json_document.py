"""One JSON document: transformers' ``trainer_state.json``, an array of rows, or an object of columns."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import msgspec

from klinic.errors import UnreadableInput
from klinic.sources.jsonl import add_row
from klinic.sources.rows import Reading, number

ORDER = 10
DOCUMENT_LIMIT = 1 << 30  # bytes; a whole document must be held at once
# What a trainer_state says of the run's configuration.
STATE_SETTINGS = (
    "logging_steps",
    "save_steps",
    "eval_steps",
    "max_steps",
    "train_batch_size",
    "num_train_epochs",
)


def sniff(name: str, head: str) -> bool:
    """It opens an array, or an object that goes on over several lines."""
    start = head.lstrip()
    if start.startswith("["):
        return start[1:].lstrip()[:1] in "{]"  # "[ 12] reward=0.4" is a console line
    if not start.startswith("{") or start[1:].lstrip()[:1] not in ('"', "}"):
        return False
    first, _, rest = start.partition("\n")
    following = rest.lstrip()
    return (
        not first.rstrip().endswith("}") and not following.startswith("{")
    ) or '"log_history"' in start[:4096]


def read(stream: BinaryIO, head: bytes, reading: Reading) -> None:
    """Fill ``reading`` from the whole document. Raises UnreadableInput where it is cut off or too large."""
    data = head + stream.read(DOCUMENT_LIMIT)
    if len(data) > DOCUMENT_LIMIT:
        raise UnreadableInput(
            "a JSON document of over 1 GiB", reading.at, "write one object a line (JSONL) instead"
        )
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError:
        try:
            document = json.loads(data)
        except UnicodeDecodeError:
            document = _json(data.decode("utf-8", "replace"), reading)
        except (ValueError, RecursionError):
            document = _json(data.decode("utf-8", "replace"), reading)
    del data
    if isinstance(document, dict):
        document = _history(document, reading)
    if not isinstance(document, list):
        reading.holds["JSON without rows"] += 1
        return
    counted = 0
    for row in document:
        if isinstance(row, dict):
            counted = add_row(row, counted, reading.at, reading)
    reading.holds["rows"] += len(document)


def _json(text: str, reading: Reading) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise UnreadableInput(
            "the JSON is nested too deeply", reading.at, "name the trainer's log file"
        ) from None
    except ValueError as trouble:
        # A state file cut off by a full disk still holds whole rows.
        rows = _whole_rows(text)
        if rows:
            reading.holds["broken lines"] += 1
            return rows
        raise UnreadableInput(
            f"broken JSON: {str(trouble)[:80]}",
            reading.at,
            "the file may be cut off; name an older copy or the text log",
        ) from None


def _whole_rows(text: str) -> list[Any]:
    begin = text.find("[")
    decoder, rows, at = json.JSONDecoder(), [], text.find("{", begin) if begin >= 0 else -1
    while at >= 0:
        try:
            row, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        rows.append(row)
        at = text.find("{", end)
    return rows


def _history(document: dict[str, Any], reading: Reading) -> Any:
    for key in STATE_SETTINGS:
        if document.get(key) not in (None, 0, -1):
            reading.config[key] = (document[key], reading.at)
    for key in ("log_history", "history", "logs", "rows", "metrics", "step_log", "records"):
        if isinstance(document.get(key), list):
            return document[key]
    columns = {
        key: value
        for key, value in document.items()
        if isinstance(value, list) and value and number(value[0]) is not None
    }
    if columns:
        length = max(len(value) for value in columns.values())
        return [
            {key: value[i] for key, value in columns.items() if i < len(value)}
            for i in range(length)
        ]
    return None
