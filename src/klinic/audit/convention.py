"""Which trainer's signature a function has, and what each of its parameters is given."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klinic.errors import BadUsage, did_you_mean

# What a parameter means, by its name; earlier names win. Plurals are lists: TRL's and ms-swift's completions, verl's batches.
MEANINGS: dict[str, tuple[str, ...]] = {
    "completion": ("completion", "completions", "solution_str", "solution_strs", "response", "responses", "model_output", "prediction",
                   "predictions", "predict_str", "output", "outputs", "generated", "generation", "generated_text", "output_text", "pred", "text"),
    "answer": ("ground_truth", "ground_truths", "gold", "gold_answer", "reference", "reference_answer", "expected", "expected_answer",
               "correct_answer", "true_answer", "target", "label", "labels", "gt", "gts", "answers", "answer", "solution", "solutions"),
    "prompt": ("prompt", "prompts", "question", "questions", "problem", "problems", "query", "input", "instruction"),
    "query": ("queries",),
    "ids": ("completion_ids", "completions_ids"),
    "state": ("trainer_state",),
    "nothing": ("log_extra", "log_metric"),
    "columns": ("extra_info", "extra_infos", "metadata"),
}  # fmt: skip
LISTS = {"completions", "solution_strs", "responses", "outputs", "predictions", "queries"}
VERL = {"data_source", "solution_str", "extra_info"}
VERL_LISTS = {"data_sources", "solution_strs", "extra_infos"}
OPEN_RLHF = {"queries", "prompts", "labels"}
SLIME = {"args", "sample"}
SIGNATURES = ("auto", "trl", "verl", "plain")


@dataclass(frozen=True, slots=True)
class Convention:
    """name: trl, verl, openrlhf, slime or plain. why: key of the reason. arguments: (parameter, or None where it is
    positional, and what it is given). batched: it takes and returns lists. chat: completions are messages."""

    name: str
    why: str
    arguments: tuple[tuple[str | None, str], ...]
    batched: bool = False
    chat: bool = False

    @property
    def call(self) -> str:
        """The call as one would write it."""
        parts = [s if name is None or name == s else f"{name}={s}" for name, s in self.arguments]
        return f"f({', '.join(p.replace('column:', 'row.') for p in parts)})"

    def plan(self) -> dict[str, Any]:
        """As the worker takes it."""
        return {"pass": self.arguments, "batched": self.batched, "chat": self.chat}


def choose(parameters: Sequence[Mapping[str, Any]] | None, columns: Collection[str], asked: str, target: str) -> Convention:  # fmt: skip
    """Find the convention. asked: auto, trl, verl, plain, or sources in order (``prompt,completion,answer``, ``gold=answer``).

    Raises BadUsage where a required parameter fits nothing.
    """
    if "," in asked or "=" in asked or asked in MEANINGS:
        return _asked(asked, columns)
    if asked not in SIGNATURES:
        raise BadUsage(
            f"unknown signature {asked!r}",
            "--signature",
            did_you_mean(asked, SIGNATURES)
            or "trl, verl, plain, or what each argument is: prompt,completion,answer",
        )
    if parameters is None:
        return Convention("plain", "unseen", ((None, "completion"), (None, "answer")))
    names = [p["name"] for p in parameters if p["kind"] not in ("star", "stars")]
    name, why = _named(set(names), asked)
    if name == "slime":
        return Convention(name, why, ((None, "none"), (None, "sample")))
    meant = _meanings(names)
    required = [p for p in parameters if p["required"] and p["kind"] not in ("star", "stars")]
    if "completion" not in meant.values() and "query" not in meant.values():
        return _by_place(required, target)
    batched = name in ("trl", "openrlhf") or bool(LISTS & set(names))
    rest = any(p["kind"] == "stars" for p in parameters)
    given: list[tuple[str | None, str]] = []
    for p in parameters:
        if p["kind"] in ("star", "stars"):
            continue
        source = _source(p, meant, columns, target)
        if source:
            given.append((None if p["kind"] == "positional-only" else p["name"], source))
    if rest and batched:
        given += [(c, f"column:{c}") for c in columns if c not in names and c.isidentifier()]
        if "prompts" not in names and name == "trl":
            given.append(("prompts", "prompt"))
    return Convention(name, why, tuple(given), batched)


def _named(names: set[str], asked: str) -> tuple[str, str]:
    if asked != "auto":
        return asked, "asked"
    if names >= SLIME:
        return "slime", "sample"
    if names >= OPEN_RLHF:
        return "openrlhf", "queries"
    if names & VERL_LISTS:
        return "verl", "solution-strs"
    if "solution_str" in names or len(names & VERL) > 1:
        return "verl", "solution-str"
    if "completions" in names:
        return "trl", "completions"
    return "plain", "one"


def _meanings(names: Sequence[str]) -> dict[str, str]:
    """Each known parameter's meaning. ``answer`` alone with ``ground_truth`` is the model's own."""
    meant: dict[str, str] = {}
    for meaning, words in MEANINGS.items():
        found = next((n for w in words for n in names if n.lower() == w and n not in meant), None)
        if found is not None:
            meant[found] = meaning
    if "completion" not in meant.values():
        left = [n for n in ("answer", "solution") if n in names and meant.get(n) != "answer"]
        if left and "answer" in meant.values():
            meant[left[0]] = "completion"
    return meant


def _source(p: Mapping[str, Any], meant: Mapping[str, str], columns: Collection[str], target: str) -> str:  # fmt: skip
    name = p["name"]
    meaning = meant.get(name, "")
    if meaning == "columns":
        return f"column:{name}" if name in columns else "columns"
    if meaning:
        return meaning
    if name in columns:
        return f"column:{name}"
    if not p["required"]:
        return ""
    if name in ("data_source", "data_sources", "task", "task_name"):
        return "none"
    raise BadUsage(
        f"its parameter {name!r} is no column of the data",
        target,
        did_you_mean(name, columns)
        or "--signature says what each argument is, e.g. prompt,completion,answer",
    )


def _by_place(required: Sequence[Mapping[str, Any]], target: str) -> Convention:
    places = {
        1: ("completion",),
        2: ("completion", "answer"),
        3: ("prompt", "completion", "answer"),
    }
    if len(required) not in places:
        raise BadUsage(
            f"its {len(required)} parameters are not understood",
            target,
            "--signature says what each argument is, e.g. prompt,completion,answer",
        )
    return Convention("plain", "places", tuple((None, s) for s in places[len(required)]))


def _asked(asked: str, columns: Collection[str]) -> Convention:
    given: list[tuple[str | None, str]] = []
    for part in asked.split(","):
        name, equals, source = part.strip().rpartition("=")
        known = [*MEANINGS, *columns]
        if source not in known:
            raise BadUsage(f"unknown argument {source!r}", "--signature",
                           did_you_mean(source, known) or f"known: {', '.join(known)}")  # fmt: skip
        given.append((name if equals else None, source if source in MEANINGS else f"column:{source}"))  # fmt: skip
    lists = any(name in LISTS for name, _ in given)
    return Convention("plain", "asked", tuple(given), lists)
