"""Samples that a training script prints into its log: tinker's trajectory groups, and question, generation and metrics in turn."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping

from klinic.rollouts.dump import PRINTED, Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import number, short_hash

ORDER = 80
COLOUR = re.compile(r"\x1b?\[\d+(?:;\d+)*m")
GROUP = re.compile(r"=+ Trajectory Group =+")
GROUP_ENDS = re.compile(r"=+ End Trajectory Group =+")
BATCH_OF_GROUPS = re.compile(
    r"progress/batch\W+(\d+)"
)  # in the table that follows the groups of a batch
TURN_ENDS = re.compile(r"\s*(?:<\|im_end\|>|<\|eot_id\|>)\s*\Z")
TRAJECTORY = re.compile(r"\*+ trajectory idx=(\d+), reward=([-+.\deE]+|nan) \*+")
ASSISTANT = re.compile(
    r"<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\n*|\n\nAssistant:"
)
SAID = re.compile(
    r"^(Question|Prompt|Generation|Completion|Response|Metrics|Rewards?|GT Answer|Ground truth):  ?",
    re.M,
)
ROUND = re.compile(r"(?:Iteration|iteration|step|Step)[ :=]+(\d+)")
RULE = re.compile(r"^-{8,}\s*$", re.M)
LONGEST = 200_000  # characters of one printed sample; what is longer is another part of the log


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether a log prints samples. Only its beginning is looked at, and its beginning may be long."""
    if not name.lower().endswith(PRINTED):
        return False
    return b"Trajectory Group" in head or (b"Generation: " in head and b"Metrics: " in head)


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches of the whole file; a log that has grown is read again."""
    if since == 0:
        text = COLOUR.sub("", dump.path.read_text("utf-8", "replace"))
        made = _tinker(text) if GROUP.search(text) else _in_turn(text)
        yield from packed([row] for row in made)


def _tinker(text: str) -> Iterator[Rollout]:
    groups = list(GROUP.finditer(text))
    tables = [(m.start(), int(m.group(1))) for m in BATCH_OF_GROUPS.finditer(text)]
    for i, (mark, end) in enumerate(
        zip(groups, [*(m.start() for m in groups[1:]), len(text)], strict=True)
    ):
        # The table of a batch stands below its groups; the last batch of a log that was cut has none. Without any, order is all there is.
        below = next((batch for at, batch in tables if at > mark.end()), None)
        step = below if below is not None else tables[-1][1] + 1 if tables else i
        pieces = TRAJECTORY.split(GROUP_ENDS.split(text[mark.end() : end])[0])[1:]
        for _, reward, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            said = body.split("---- datum ----", 1)[-1]
            # The chat template marks where the answer begins; the last turn is what was written.
            parts = ASSISTANT.split(said)
            if len(parts) < 2:
                continue
            prompt, answer = "".join(parts[:-1]), re.split(r"\n[\w.]+:\d+ \[[A-Z]+\]", parts[-1])[0]
            prompt = prompt.replace("<|im_start|>user\n", "").strip()
            whole = TURN_ENDS.search(answer)
            yield Rollout(
                step=step,
                group=str(i),
                prompt=prompt,
                prompt_id=short_hash(prompt),
                completion=answer[: whole.start()].strip() if whole else answer.strip(),
                truncated=None if "<|" not in said else whole is None,
                reward=number(reward),
            )


def _in_turn(text: str) -> Iterator[Rollout]:
    step, asked_at, at = -1, -1, 0
    found: dict[str, str] = {}
    marks = list(SAID.finditer(text))
    rounds = [(m.start(), int(m.group(1))) for m in ROUND.finditer(text)]
    for i, mark in enumerate(marks):
        while at < len(rounds) and rounds[at][0] < mark.start():
            step = rounds[at][1]
            at += 1
        kind = mark.group(1).lower()
        end = marks[i + 1].start() if i + 1 < len(marks) else len(text)
        body = RULE.split(text[mark.end() : min(end, mark.end() + LONGEST)])[0].strip()
        if kind in ("question", "prompt"):
            if (made := _made(found, asked_at)) is not None:
                yield made
            found, asked_at = {}, step
        elif kind in ("metrics", "reward", "rewards", "gt answer", "ground truth"):
            body = body.split("\n", 1)[0]
        found[kind] = body
    if (made := _made(found, asked_at)) is not None:
        yield made


def _made(found: Mapping[str, str], step: int) -> Rollout | None:
    wrote = next((found[k] for k in ("generation", "completion", "response") if k in found), None)
    if wrote is None:
        return None
    prompt = found.get("question", found.get("prompt", ""))
    answer = next((found[k] for k in ("gt answer", "ground truth") if k in found), "")
    made = Rollout(
        step=step, prompt=prompt, prompt_id=short_hash(prompt), completion=wrote, answer=answer
    )
    made.group = made.prompt_id
    said = found.get("metrics", found.get("reward", found.get("rewards", "")))
    try:
        metrics = ast.literal_eval(said)
    except (ValueError, SyntaxError):
        metrics = None
    if isinstance(metrics, dict):
        parts = {str(k): n for k, v in metrics.items() if not math.isnan(n := number(v))}
        made.reward = parts.pop("reward", math.nan)
        made.reward_parts = parts
    elif metrics is not None:
        made.reward = number(metrics)
    return made
