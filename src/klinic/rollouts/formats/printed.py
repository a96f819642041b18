"""Samples that a training script prints into its log: tinker's trajectory groups, and question, generation and metrics in turn."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping

from klinic.rollouts.dump import Batch, Dump
from klinic.rollouts.formats._packed import packed
from klinic.rollouts.rollout import Rollout
from klinic.rollouts.rows import number, short_hash

ORDER = 80
ENDINGS = (".log", ".txt", ".out")
COLOUR = re.compile(r"\x1b?\[\d+(?:;\d+)*m")
GROUP = re.compile(r"=+ Trajectory Group =+")
TRAJECTORY = re.compile(r"\*+ trajectory idx=(\d+), reward=([-+.\deE]+|nan) \*+")
ASSISTANT = re.compile(
    r"<\|im_start\|>assistant\n|<\|start_header_id\|>assistant<\|end_header_id\|>\n*|\n\nAssistant:"
)
SAID = re.compile(
    r"^(Question|Prompt|Generation|Completion|Response|Metrics|Rewards?|GT Answer|Ground truth|Answer):  ?",
    re.M,
)
ROUND = re.compile(r"(?:Iteration|iteration|step|Step)[ :=]+(\d+)")
RULE = re.compile(r"^-{8,}\s*$", re.M)
LONGEST = 200_000  # characters of one printed sample; what is longer is another part of the log


def sniff(name: str, head: bytes, names: Mapping[str, str]) -> bool:
    """Whether a log prints samples. Only its beginning is looked at, and its beginning may be long."""
    if not name.lower().endswith(ENDINGS):
        return False
    return b"Trajectory Group" in head or (b"Generation: " in head and b"Metrics: " in head)


def read(dump: Dump, since: int, names: Mapping[str, str]) -> Iterator[Batch]:
    """Batches of the whole file; a log that has grown is read again."""
    if since == 0:
        text = COLOUR.sub("", dump.path.read_text("utf-8", "replace"))
        made = _tinker(text) if GROUP.search(text) else _in_turn(text)
        yield from packed([row] for row in made)


def _tinker(text: str) -> Iterator[Rollout]:
    for i, group in enumerate(GROUP.split(text)[1:]):
        pieces = TRAJECTORY.split(group)[1:]
        for _, reward, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            said = body.split("---- datum ----", 1)[-1]
            # The chat template marks where the answer begins; the last turn is what was written.
            parts = ASSISTANT.split(said)
            if len(parts) < 2:
                continue
            prompt, answer = "".join(parts[:-1]), re.split(r"\n[\w.]+:\d+ \[[A-Z]+\]", parts[-1])[0]
            prompt = prompt.replace("<|im_start|>user\n", "").strip()
            # A few groups are printed a batch, and the log does not say which batch: their order stands for the step.
            yield Rollout(
                step=i,
                group=str(i),
                prompt=prompt,
                prompt_id=short_hash(prompt),
                completion=answer.strip(),
                reward=number(reward),
            )


def _in_turn(text: str) -> Iterator[Rollout]:
    step, at = -1, 0
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
            if (made := _made(found, step)) is not None:
                yield made
            found = {}
        elif kind in ("metrics", "reward", "rewards", "gt answer", "ground truth", "answer"):
            body = body.split("\n", 1)[0]
        found[kind] = body
    if (made := _made(found, step)) is not None:
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
