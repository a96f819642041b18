"""Records that hold trajectories: prime-rl's traces, rLLM's episodes, ART's YAML. A trajectory is one sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from klinic.errors import UnreadableInput
from klinic.rollouts import chat
from klinic.rollouts.dump import Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.formats.lines import batches, decoded
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import CUT, inside, number, short_hash

ORDER = 30
HELD = ("traces", "trajectories")
SAID = ("messages", "messages_and_choices", "nodes", "chat_completions", "steps")


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether its records have traces or trajectories, each with a reward."""
    low = name.lower()
    marks = (
        [f'"{held}"'.encode() for held in HELD]
        if not low.endswith((".yaml", ".yml"))
        else [b"trajectories:"]
    )
    return (
        low.endswith((".jsonl", ".json", ".yaml", ".yml"))
        and any(m in head for m in marks)
        and b"reward" in head
    )


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches from byte ``since`` on of a file of lines; else of the whole file."""
    if dump.path.suffix == ".jsonl":
        with open(dump.path, "rb") as stream:
            yield from batches(stream, since, lambda lines: _of_lines(dump, lines))
    elif since == 0:
        yield from packed([_record(dump, record) for record in _whole(dump)])


def _of_lines(dump: Dump, lines: list[bytes]) -> Batch:
    batch = Batch()
    for line in lines:
        if line.strip():
            made = _record(dump, decoded(line))
            batch.rows += made
            batch.skipped += not made
    return batch


def _whole(dump: Dump) -> list[Any]:
    raw = dump.path.read_text("utf-8", "replace")
    if dump.path.suffix == ".json":
        return [decoded(raw.encode())]
    import yaml

    try:
        return list(yaml.load_all(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError:
        raise UnreadableInput(
            "no YAML", str(dump.path), "write it again, or leave it out"
        ) from None


def _record(dump: Dump, record: Any) -> list[Rollout]:
    if not isinstance(record, Mapping):
        return []
    held: list[Any] = next((record[key] for key in HELD if isinstance(record.get(key), list)), [])
    return [
        made
        for one in held
        if isinstance(one, Mapping) and (made := _one(dump, record, one)) is not None
    ]


def _one(dump: Dump, record: Mapping[str, Any], one: Mapping[str, Any]) -> Rollout | None:
    said = next((one[key] for key in SAID if isinstance(one.get(key), list)), None)
    if said is None:
        return None
    messages = [m for piece in said if (m := _message(piece)) is not None]
    prompt, completion = chat.split(messages)
    if completion is None:
        return None
    made = Rollout(
        prompt=chat.text(prompt), completion=chat.text(completion), reward=number(one.get("reward"))
    )
    step = dump.step if dump.step is not None else number(record.get("step"))
    made.step = int(step) if step == step else -1
    made.prompt_id = str(record.get("example_id", "")) or short_hash(made.prompt)
    made.group = str(record.get("group_id", "")) or made.prompt_id
    made.advantage = number(one.get("advantage", inside(one, "info.advantage")))
    cut = one.get("is_truncated", record.get("is_truncated"))
    why = str(one.get("stop_condition") or record.get("termination_reason") or "").lower()
    made.truncated = bool(cut) if cut is not None else (why in CUT if why else None)
    made.acc = number(record.get("is_correct", one.get("is_correct")))
    task = record.get("task")
    if isinstance(task, Mapping):
        made.answer = str(task.get("answer") or task.get("ground_truth") or "")
        task = task.get("name") or task.get("data_source")
    made.task = str(task or "")
    made.error = str(one.get("error") or record.get("error") or "")
    return made


def _message(piece: Any) -> dict[str, Any] | None:
    """A message of any of the shapes: itself, an API's choice around it, a node or a step with a model's response."""
    if not isinstance(piece, Mapping):
        return None
    for inner in ("message", "node"):
        if isinstance(piece.get(inner), Mapping):
            piece = piece[inner]
    if "role" in piece:
        return {"role": str(piece["role"]), "content": piece.get("content")}
    if "model_response" in piece:
        return {"role": "assistant", "content": piece["model_response"]}
    return None
