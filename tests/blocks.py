"""``curves`` blocks of the pages: a few lines that describe a run and what must be said of it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from klinic.derive import derived
from klinic.run import Curve, Metric, Run, Segment, Setting, Trainer
from klinic.vitals import ROLES

NAMES = {
    "kl": "kl_ref/k3/token_mean/response_only",
    "entropy": "entropy/token_mean/response_only",
    "mismatch": "kl_rollout/abs/token_mean/response_only",
    "reward_std": "reward_std/batch",
}
CURVE = re.compile(
    r"^(?P<name>\w[\w/]*)\s+(?P<a>[-+.\deE]+)(?:\s*->\s*(?P<b>[-+.\deE]+))?"
    r"(?:,?\s*(?P<flat>flat\s+from|from)\s+(?P<start>\d+)(?:\s+to\s+(?P<stop>\d+))?)?(?:,\s*(?P<peak>[-+.\deE]+)\s+at\s+(?P<first>\d+)(?:\s+to\s+(?P<last>\d+))?)?(?:\s+noise\s+(?P<noise>[.\d]+)\s*%)?$"
)
EXPECT = re.compile(
    r"^expect\s+(?P<negative>not\s+)?(?:status\s+(?P<status>\w+)|(?P<slug>[a-z-]+))(?:,\s*onset\s+(?P<at>\d+)\s*\+-\s*(?P<by>\d+))?$"
)


@dataclass
class Block:
    """One parsed block."""

    first: int = 0
    last: int = 200
    noise: float = 0.02
    ar: float = 0.3
    curves: list[re.Match[str]] = field(default_factory=list)
    config: dict[str, object] = field(default_factory=dict)
    restarts: list[int] = field(default_factory=list)
    expects: list[re.Match[str]] = field(default_factory=list)
    text: str = ""


def blocks_of(text: str) -> list[Block]:
    """Every block of a Markdown text."""
    return [parse(body) for body in re.findall(r"```curves\n(.*?)```", text, re.DOTALL)]


def blocks_in(path: Path) -> list[Block]:
    """Every block of a file."""
    return blocks_of(path.read_text(encoding="utf-8"))


def parse(body: str) -> Block:
    """Raises ValueError for a line that is no part of the grammar."""
    block = Block(text=body)
    for raw in body.splitlines():
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        if line.startswith("step "):
            head = re.match(
                r"step\s+(\d+)\s*\.\.\s*(\d+)(?:\s+noise\s+([.\d]+)\s*%)?(?:\s+ar\s+([.\d]+))?",
                line,
            )
            if head is None:
                raise ValueError(line)
            block.first, block.last = int(head[1]), int(head[2])
            block.noise = float(head[3]) / 100 if head[3] else block.noise
            block.ar = float(head[4]) if head[4] else block.ar
        elif line.startswith("config "):
            _, knob, value = line.split(None, 2)
            block.config[knob] = float(value) if re.fullmatch(r"[-+.\deE]+", value) else value
        elif line.startswith("restart "):
            block.restarts.append(int(line.split()[1]))
        elif line.startswith("expect"):
            found = EXPECT.match(line)
            if found is None:
                raise ValueError(line)
            block.expects.append(found)
        else:
            found = CURVE.match(line)
            if found is None:
                raise ValueError(line)
            block.curves.append(found)
    return block


def run_of(block: Block, seed: int) -> Run:
    """The run the block describes, with its noise drawn from ``seed``."""
    rng = np.random.default_rng(seed)
    steps = np.arange(block.first, block.last + 1)
    n = len(steps)
    curves: dict[str, Curve] = {}
    for line in block.curves:
        a = float(line["a"])
        b = a if line["b"] is None else float(line["b"])
        begin, end = float(block.first), float(block.last)
        if line["flat"] is not None and line["flat"].startswith("flat"):
            end = float(line["start"])
        elif line["start"] is not None:
            begin = float(line["start"])
            end = float(line["stop"]) if line["stop"] else end
        share = np.clip((steps - begin) / max(1.0, end - begin), 0, 1)
        level = a + (b - a) * (share * share * (3 - 2 * share) if line["start"] else share)
        if line["peak"] is not None:
            last = int(line["last"] or line["first"])
            level = np.where(
                (steps >= int(line["first"])) & (steps <= last), float(line["peak"]), level
            )
        own = (
            float(line["noise"]) / 100
            if line["noise"]
            else (0.002 if line["name"].startswith("ratio") else block.noise)
        )
        white = rng.normal(size=n)
        noise = np.empty(n)
        noise[0] = white[0]
        for i in range(1, n):
            noise[i] = block.ar * noise[i - 1] + np.sqrt(1 - block.ar**2) * white[i]
        values = (
            level * (1 + own * noise) if line["b"] is not None or line["noise"] or own else level
        )
        name = line["name"]
        canonical = (
            name if "/" in name else NAMES.get(name, ROLES[name].names[-1].replace("*", "block"))
        )
        role = ROLES.get(name)
        if (role is not None and role.unit == "share") or "/" in name:
            values = np.clip(values, 0, 1)
        curves[canonical] = Curve(
            Metric(canonical, "from a block", role.unit if role else "share", name), steps, values
        )
    config = {knob: Setting(knob, knob, value, "block") for knob, value in block.config.items()}
    trainer = Trainer("generic", "your own loop", "block")
    curves = derived(curves, config, trainer)
    return Run(
        "block",
        "block",
        trainer,
        curves,
        config=config,
        segments=tuple(
            Segment(a, b - 1)
            for a, b in itertools.pairwise([block.first, *block.restarts, block.last + 1])
        ),
        first=block.first,
        last=block.last,
        logged=n,
    )


def complaints(block: Block, seed: int) -> list[str]:
    """What the diagnosis of the block gets wrong."""
    from klinic.diagnose import judge

    answer = judge(run_of(block, seed))
    found = {f.failure: f for f in answer.findings}
    shown = {slug for slug, f in found.items() if f.status in ("present", "consequence", "benign")}
    wrong = [f"{slug} crashed: {f.crashed}" for slug, f in found.items() if f.crashed]
    for expect in block.expects:
        if expect["status"]:
            if answer.status != expect["status"]:
                wrong.append(
                    f"status {answer.status} ({sorted(shown)}), expected {expect['status']}"
                )
            continue
        slug = expect["slug"]
        if slug not in found:
            wrong.append(f"no such failure: {slug}")
        elif expect["negative"]:
            if found[slug].status in ("present", "consequence"):
                wrong.append(f"must not say {slug}")
        elif slug not in shown:
            wrong.append(f"does not say {slug}, says {sorted(shown)}")
        elif expect["at"]:
            onset = found[slug].onset
            if onset is None or abs(onset.step - int(expect["at"])) > int(expect["by"]):
                wrong.append(
                    f"{slug} onset {onset and onset.step}, expected {expect['at']} +- {expect['by']}"
                )
    return wrong
