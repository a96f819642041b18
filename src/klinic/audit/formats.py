"""How an honest completion states its answer: the usual formats, those that the function's own source names, the user's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from klinic.audit.rows import Row

# Reasoning without a number in it: no extractor may find one.
WORK = "Let me work this out step by step from what is given, then check the result."
SLOT = "{answer}"
FORMATS: dict[str, str] = {
    "sentence": "The answer is {answer}.",
    "bare": "{answer}",
    "work": WORK + " The answer is {answer}",
    "hash": WORK + "\n#### {answer}",
    "boxed": WORK + " \\boxed{{answer}}",
    "label": WORK + "\nAnswer: {answer}",
    "final-label": WORK + "\nFinal answer: {answer}",
    "answer-tag": "<answer>{answer}</answer>",
    "think-answer": "<think>" + WORK + "</think><answer>{answer}</answer>",
    "think-answer-line": "<think>" + WORK + "</think>\n<answer>{answer}</answer>",
    "think-answer-lines": "<think>\n" + WORK + "\n</think>\n<answer>\n{answer}\n</answer>",
    "think-boxed": "<think>\n" + WORK + "\n</think>\n\nThe answer is \\boxed{{answer}}.",
    "think-answer-boxed": "<think>\n" + WORK + "\n</think>\n<answer>\n\\boxed{{answer}}\n</answer>",
    "reasoning-answer": "<reasoning>\n" + WORK + "\n</reasoning>\n<answer>\n{answer}\n</answer>\n",
    "json": '{"answer": "{answer}"}',
    "json-number": '{"answer": {answer}}',
    "fence": "```\n{answer}\n```",
    "fence-json": '```json\n{"answer": "{answer}"}\n```',
}  # fmt: skip
TAG = re.compile(r"<(\\?/)?([A-Za-z][\w-]{1,30})>")  # as source and regular expressions write them
ORDINARY = {"think", "answer", "reasoning"}
NAMED_GROUP = re.compile(r"\(\?P<\w+>")


def tags_in(strings: Iterable[str]) -> list[str]:
    """Tags that the function's source names, in their order."""
    found = [m.group(2) for text in strings for m in TAG.finditer(NAMED_GROUP.sub("(", text))]
    return list(dict.fromkeys(found))


def own_formats(strings: Sequence[str]) -> dict[str, str]:
    """Formats from the tags in the function's source: the last one holds the answer, the others the work."""
    tags = tags_in(strings)
    if not tags or set(tags) <= ORDINARY:
        return {}
    last = next((t for t in tags if re.search("answer|solution|result|final", t, re.I)), tags[-1])
    first = [t for t in tags if t != last]
    lines = [f"<{t}>\n{WORK}\n</{t}>" for t in first] + [f"<{last}>{SLOT}</{last}>"]
    return {
        "source-tags": "\n".join(lines),
        "source-tags-lines": "\n".join([*lines[:-1], f"<{last}>\n{SLOT}\n</{last}>"]),
        "source-last-tag": lines[-1],
    }


def learnt_formats(labelled: Sequence[Row], most: int = 3) -> dict[str, str]:
    """Formats of completions that were labelled right: where the answer stands last, another is put."""
    found: dict[str, str] = {}
    for row in labelled:
        if not row.right or row.answer is None or len(row.answer.stated) < 1:
            continue
        before, stated, after = str(row.completion).rpartition(row.answer.stated)
        if stated and row.answer.stated not in before and len(found) < most:
            found[f"labelled-{row.number}"] = before + SLOT + after
    return found


def filled(template: str, answer: str) -> str:
    """A template with its answer; no other brace means anything."""
    return template.replace(SLOT, answer)


def around(template: str) -> tuple[str, str]:
    """What stands before and after the answer, without the work."""
    before, _, after = template.replace(WORK, "").partition(SLOT)
    return before, after
