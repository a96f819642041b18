"""A row of a dump as a Rollout, or as several where it holds a whole group."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from klinic.rollouts import chat
from klinic.rollouts.columns import Columns
from klinic.rollouts.dump import Dump
from klinic.rollouts.rollout import Rollout

CUT = {"length", "max_tokens", "max_length", "truncated", "max_response_length_exceeded"}
WENT_WRONG = {"failed", "aborted", "error", "abort"}
# The sample's place within its group at the end of a uid (verl: uid_session_trajectory).
PLACE = re.compile(r"(_\d+)+$")
NOTHING: tuple[Any, ...] = (None, "", [], {})

Rows = Callable[[Mapping[str, Any]], list[Rollout]]


def rows_of(dump: Dump, columns: Columns) -> Rows:
    """The function that turns one row into its rollouts; it gives none for a row that holds no sample."""
    at, deep = columns.at, columns.deep
    lists = {"prompt", "completion"} & at.keys()

    def value(row: Mapping[str, Any], what: str) -> Any:
        name = at.get(what)
        if name is None:
            return None
        if name in deep:
            return inside(row, name)
        return row.get(name)

    def rollout(row: Mapping[str, Any]) -> Rollout | None:
        prompt, completion = value(row, "prompt"), value(row, "completion")
        if completion is None and columns.halves:
            completion = "\n".join(str(row[h]) for h in columns.halves if row.get(h))
        if completion is None and isinstance(said := value(row, "messages"), list):
            before, completion = chat.split(said)
            prompt = before if prompt is None else prompt
        tokens = value(row, "completion_tokens")
        if completion is None:
            completion = value(row, "content")
        if completion is None and isinstance(tokens, list):
            # No words: the ids stand for them, so that equal answers stay equal and loops stay loops.
            completion = _ids(tokens)
            ids = value(row, "prompt_tokens")
            prompt = _ids(ids) if prompt is None and isinstance(ids, list) else prompt
        if completion is None:
            return None
        mask = value(row, "mask")
        made = Rollout(prompt=chat.text(prompt), completion=chat.text(completion))
        said = value(row, "reward")
        parts = {name: number(row[name]) for name in columns.parts if row.get(name) is not None}
        if isinstance(own := value(row, "reward_parts"), dict):
            parts |= {str(k): n for k, v in own.items() if not math.isnan(n := number(v))}
        if isinstance(said, dict):
            made.reward, inner = _paid(said)
            parts = {**inner, **parts}
        else:
            made.reward = number(said)
        if parts:
            made.reward_parts = parts
            if math.isnan(made.reward):  # TRL writes the parts alone; its weights are 1 by default
                made.reward = math.fsum(parts.values())
        step = dump.step if dump.step is not None else whole(value(row, "step"))
        made.step = -1 if step is None else step
        made.prompt_id = str(found) if (found := value(row, "prompt_id")) is not None else ""
        if not made.prompt_id and made.prompt:
            made.prompt_id = short_hash(made.prompt)
        group = value(row, "group")
        made.group = made.prompt_id if group is None else _group(at["group"], group)
        made.advantage = _advantage(value(row, "advantage"), mask)
        made.length = _length(value, row, mask, tokens)
        made.truncated, made.error = _ended(value, row)
        made.policy_version = _version(value(row, "policy_version"))
        made.answer = _answer(value(row, "answer"))
        made.acc = number(value(row, "acc"))
        made.task = _word(value(row, "task"))
        return made

    def rollouts(row: Mapping[str, Any]) -> list[Rollout]:
        if lists and (several := _several(row, columns)):
            return [made for one in several if (made := rollout(one)) is not None]
        made = rollout(row)
        return [] if made is None else [made]

    return rollouts


def _several(row: Mapping[str, Any], columns: Columns) -> list[dict[str, Any]]:
    """The samples of a row that has lists of them: every list as long as the completions is one value a sample."""
    name = columns.at.get("completion")
    held = row.get(name) if name is not None else None
    if not isinstance(held, list) or not held or isinstance(held[0], dict):
        return []
    n = len(held)
    chatty = {columns.at.get("prompt"), columns.at.get("messages")}
    return [
        {
            key: value[i]
            if isinstance(value, list)
            and len(value) == n
            and not (key in chatty and isinstance(value[0], dict))
            else value
            for key, value in row.items()
        }
        for i in range(n)
    ]


def inside(row: Any, dotted: str) -> Any:
    """The value at ``a.b.0.c``, or None."""
    for part in dotted.split("."):
        if isinstance(row, Mapping):
            row = row.get(part)
        elif (
            isinstance(row, list)
            and part.lstrip("-").isdigit()
            and -len(row) <= int(part) < len(row)
        ):
            row = row[int(part)]
        else:
            return None
    return row


def number(value: Any) -> float:
    """A number, NaN where it is none; of a list the sum, as trainers pay the sum of the token rewards."""
    if isinstance(value, float):
        return value
    if isinstance(value, bool | int):
        return float(value)
    if isinstance(value, list) and value and all(isinstance(v, int | float) for v in value):
        return float(sum(value))
    if isinstance(value, str):
        word = value.strip().lower()
        if word in {"true", "false"}:
            return float(word == "true")
        try:
            return float(word)
        except ValueError:
            return math.nan
    return math.nan


def whole(value: Any) -> int | None:
    """A step: 12, "12", 12.0, "12/400"."""
    if isinstance(value, str):
        value = value.split("/")[0]
    found = number(value)
    return int(found) if math.isfinite(found) else None


def short_hash(text: str) -> str:
    """Sixteen hex digits that are equal for equal texts."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _paid(said: Mapping[str, Any]) -> tuple[float, dict[str, float]]:
    total = math.nan
    for key in ("score", "reward", "total", "value", "overall"):
        if key in said:
            total = number(said[key])
            break
    parts = {str(k): n for k, v in said.items() if not math.isnan(n := number(v))}
    return total, parts


def _group(name: str, value: Any) -> str:
    text = _word(value)
    return PLACE.sub("", text) if name == "uid" else text


def _advantage(value: Any, mask: Any) -> float:
    """Of a list, one value a token, the mean over the tokens that were trained on."""
    if not isinstance(value, list):
        return number(value)
    if isinstance(mask, list) and len(mask) == len(value):
        value = [v for v, m in zip(value, mask, strict=True) if m]
    value = [v for v in value if isinstance(v, int | float)]
    return sum(value) / len(value) if value else math.nan


def _length(
    value: Callable[[Mapping[str, Any], str], Any], row: Mapping[str, Any], mask: Any, tokens: Any
) -> float:
    said = value(row, "length")
    if said is not None and not isinstance(said, list):
        return number(said)
    if isinstance(mask, list) and mask:
        return float(sum(1 for m in mask if m))
    total, before = number(value(row, "total_length")), number(value(row, "prompt_length"))
    if not math.isnan(total - before):
        return total - before
    return float(len(tokens)) if isinstance(tokens, list) else math.nan


def _ended(
    value: Callable[[Mapping[str, Any], str], Any], row: Mapping[str, Any]
) -> tuple[bool | None, str]:
    cut: bool | None = None
    said = number(value(row, "truncated"))
    if not math.isnan(said):
        cut = said > 0
    error = _word(value(row, "error"))
    why = value(row, "finish_reason")
    if isinstance(why, list):
        why = why[-1] if why else None
    if isinstance(why, str) and why:
        word = why.rsplit(".", 1)[-1].lower()
        if cut is None:
            cut = word in CUT
        if word in WENT_WRONG and not error:
            error = word
    return cut, error


def _version(value: Any) -> float:
    """Of several, one a turn, the last."""
    if isinstance(value, list):
        value = value[-1] if value else None
    return number(value)


def _answer(value: Any) -> str:
    if isinstance(value, Mapping):
        for key in ("ground_truth", "answer", "target"):
            if key in value:
                return _answer(value[key])
    if isinstance(value, list) and len(value) == 1:
        return _answer(value[0])
    return _word(value)


def _word(value: Any) -> str:
    if value in NOTHING or value is False:
        return ""
    return value if isinstance(value, str) else str(value)


def _ids(tokens: list[Any]) -> str:
    return " ".join(str(t) for t in tokens)
