"""A dictionary in the line, as Python prints it or as JSON: ``{'loss': '0.031', 'reward': nan}``."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from klinic.sources.grammar import Row
from klinic.sources.rows import numbers, step_of

ORDER = 20
_NUMPY = re.compile(r"np\.\w+\(([^()]*)\)")
_TENSOR = re.compile(r"tensor\(([-+.\deE]+)[^()]*\)")
_BARE = re.compile(r"(?<=[:\s,\[(])([+-]?)(nan|inf)\b", re.IGNORECASE)
# "step 12: {...}", "Global step 12: {...}", "perf 3: {...}", "global_step 20, eval_metrics: {...}" (slime, OpenRLHF
# and hand-written loops).
_LEADING_STEP = re.compile(
    r"(?:step|rollout|perf|eval|iteration|iter|update)\s*[=:#]?\s*(\d+)(?:, eval_metrics)?\s*[:=\]|-]*\s*$",
    re.IGNORECASE,
)
MIN_NUMBERS = 2


def parse(text: str) -> Row | None:
    """The last balanced dictionary of the line, if it holds at least two numbers."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end <= begin or ":" not in text[begin:end]:
        return None
    found = literal(text[begin : end + 1])
    if not isinstance(found, dict):
        return None
    step = step_of(found)
    inner = found.get("metrics")
    if isinstance(inner, dict) and inner:
        found = inner  # ROLL's {"step": 3, "metrics": {...}}
    if step is None and (before := _LEADING_STEP.search(text[:begin].rstrip())):
        step = int(before.group(1))
    values = numbers(found)
    if len(values) < (MIN_NUMBERS if step is None else 1):
        return None
    return Row(step, values, found)


def literal(text: str) -> Any:
    """Evaluate a printed dictionary without running anything; None where it is none."""
    if text.startswith('{"'):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    if text.startswith("{'") and '"' not in text and "\\" not in text:
        try:  # numbers and plain words read alike as JSON, in a tenth of the time
            return json.loads(text.replace("'", '"'))
        except (ValueError, RecursionError):
            pass
    text = _TENSOR.sub(r"\1", _NUMPY.sub(r"\1", text))
    # Python prints nan and inf bare, which is no literal: they travel as text that number() understands.
    text = _BARE.sub(lambda m: f"'{m.group(1)}{m.group(2)}'", text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
