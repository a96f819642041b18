"""The other side of the wall: imports the user's function and calls it, one JSON line in, one out.

Run as a script, by whichever Python the trainer uses: it needs nothing but the standard library. The function's own
prints go nowhere, since the protocol has a pipe of its own.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import math
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

SCORE_KEYS = ("score", "reward", "rewards", "value", "acc", "correct")  # verl's is the first
KINDS = ("positional-only", "positional", "star", "keyword-only", "stars")
TEXT = 500  # characters of an exception's words that are handed on


def opened(target: str) -> tuple[Any, dict[str, Any]]:
    """The callable, and what can be seen of it without calling it."""
    module, _, name = target.rpartition(":")
    sys.path.insert(0, os.getcwd())
    if module.endswith(".py"):
        sys.path.insert(0, os.path.dirname(os.path.abspath(module)))
        stem = os.path.basename(module)[:-3]
        spec = importlib.util.spec_from_file_location(stem, module)
        assert spec is not None and spec.loader is not None
        held: Any = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(stem, held)
        spec.loader.exec_module(held)
    else:
        held = importlib.import_module(module)
    names = [n for n, v in vars(held).items() if callable(v) and not n.startswith("_")]
    found = held
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        return None, {"ok": False, "missing": True, "known": names}
    if inspect.isclass(found):  # ms-swift's ORM and the like
        found = found()
    return found, {"ok": True, "parameters": parameters(found), "strings": strings(found)}


def parameters(function: Any) -> list[dict[str, Any]] | None:
    """Names, kinds and which are required; None where Python cannot tell."""
    try:
        held = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        {"name": p.name, "kind": KINDS[int(p.kind)], "required": p.default is p.empty} for p in held
    ]


def strings(function: Any) -> list[str]:
    """The texts that the function's module compares with, docstrings left out."""
    try:
        code = inspect.unwrap(function)
        code = code if inspect.isroutine(code) else type(code)
        tree = ast.parse(Path(inspect.getsourcefile(code) or "").read_text("utf-8"))
    except (OSError, TypeError, SyntaxError, ValueError):
        return []
    said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    found = [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in said
    ]
    return list(dict.fromkeys(found))


def messages(role: str, text: Any) -> Any:
    """A text as the one message of a conversation; messages stay as they are."""
    return text if isinstance(text, list) else [{"role": role, "content": text}]


def handed(source: str, row: dict[str, Any], chat: bool) -> Any:
    """What one parameter gets."""
    prompt, completion = row["prompt"], row["completion"]
    if source == "prompt":
        return messages("user", prompt) if chat else prompt
    if source == "completion":
        return messages("assistant", completion) if chat else completion
    if source == "answer":
        return row["answer"]
    if source == "query":
        return f"{row['text']}{completion}"
    if source == "ids":  # no tokenizer is at hand
        return [ord(c) for c in completion or ""]
    if source == "state":
        return types.SimpleNamespace(global_step=0, max_steps=1000)
    if source == "nothing":
        return lambda *_, **__: None
    if source == "sample":  # slime's and miles'
        return types.SimpleNamespace(
            prompt=prompt, response=completion, label=row["answer"], metadata=row["columns"]
        )
    if source == "columns":
        return row["columns"]
    if source == "none":
        return None
    return row["columns"].get(source.partition(":")[2])


def called(function: Any, plan: dict[str, Any], rows: list[dict[str, Any]]) -> list[Any]:
    """One answer a row, of one call; rows: one, or several where the function takes lists."""
    if not plan["batched"]:
        return [finished(function, *split(plan, lambda s: handed(s, rows[0], plan["chat"])))]
    got = finished(function, *split(plan, lambda s: listed(s, rows, plan["chat"])))
    if isinstance(got, dict):
        got = next((got[k] for k in ("rewards", "scores", "score", "reward") if k in got), got)
    got = got.tolist() if hasattr(got, "tolist") else got
    if got is None or isinstance(got, (int, float)):
        raise TypeError(f"returned {type(got).__name__} for a list of {len(rows)} completions")
    got = list(got)
    if len(got) != len(rows):
        raise ValueError(f"returned {len(got)} rewards for {len(rows)} completions")
    return got


def listed(source: str, rows: list[dict[str, Any]], chat: bool) -> Any:
    """What one parameter of a function of lists gets; the trainer's own objects are the same for all."""
    if source in ("state", "nothing"):
        return handed(source, rows[0], chat)
    return [handed(source, row, chat) for row in rows]


def split(plan: dict[str, Any], value: Any) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments."""
    first = [value(source) for name, source in plan["pass"] if name is None]
    return first, {name: value(source) for name, source in plan["pass"] if name is not None}


def finished(function: Any, first: list[Any], named: dict[str, Any]) -> Any:
    """Call, and await where it is a coroutine."""
    got = function(*first, **named)
    if not inspect.isawaitable(got):
        return got
    import asyncio

    return asyncio.run(wait(got))


async def wait(got: Any) -> Any:
    """An awaitable of any sort."""
    return await got


def score(got: Any) -> float | None:
    """One number of what was returned; None stays None. Raises TypeError where there is none."""
    if got is None:
        return None
    if isinstance(got, (bool, int, float)):
        return float(got)
    if isinstance(got, dict):
        for key in SCORE_KEYS:
            if key in got:
                return score(got[key])
        raise TypeError(f"returned a dict without a score: {sorted(map(str, got))}")
    if hasattr(got, "item") and getattr(got, "size", 1) in (1, ()):
        return float(got.item())
    if isinstance(got, tuple) and got:  # (score, what else it says)
        return score(got[0])
    if isinstance(got, list) and len(got) == 1:
        return score(got[0])
    return float(got)  # numpy's and torch's own, Fraction, Decimal; else its TypeError


def replied(function: Any, plan: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Call, and say the scores, the seconds, or what was raised."""
    begun = time.perf_counter()
    try:
        got = called(function, plan, rows)
        seconds = time.perf_counter() - begun
        scores = [score(one) for one in got]
    except KeyboardInterrupt:
        raise
    except BaseException as trouble:  # SystemExit as well: it would end the trainer
        told = f"{type(trouble).__name__}: {trouble}".partition("\n")[0][:TEXT]
        return {"error": told, "seconds": time.perf_counter() - begun}
    finite = [s if s is None or math.isfinite(s) else str(s) for s in scores]
    return {"scores": finite, "seconds": seconds}


def main() -> None:
    """Answer until the input ends."""
    inward, outward = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    function: Any = None

    def tell(answer: dict[str, Any]) -> None:
        outward.write(json.dumps(answer).encode() + b"\n")
        outward.flush()

    for line in inward:
        asked = json.loads(line)
        if asked["do"] == "open":
            try:
                function, answer = opened(asked["target"])
            except BaseException as trouble:
                told = f"{type(trouble).__name__}: {trouble}".partition("\n")[0][:TEXT]
                answer = {"ok": False, "missing": False, "error": told}
            tell(answer)
        elif asked["do"] == "together":
            tell(replied(function, asked["plan"], asked["rows"]))
        else:
            for row in asked["rows"]:
                tell(replied(function, asked["plan"], [row]))


if __name__ == "__main__":
    sys.path.pop(0)  # this file's folder is none of the user's
    main()
