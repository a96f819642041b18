"""``klinic memory``: does it fit, by the longest sequence, before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from klinic.cli import language
from klinic.cli._options import lang_option, output_option, write

# What the trainers do unless told otherwise (their tables' sources): verl shards with FSDP and frees the sampler's
# memory during the update; TRL keeps it unless sleep mode is on, and makes logits of the answer's tokens only.
HABITS: dict[str, dict[str, Any]] = {
    "verl": {"sharding": "fsdp", "sleeps": True},
    "trl": {"sharding": "none", "sleeps": False, "completion_logits": True},
}


@click.command("memory")
@click.option("--model", required=True, help="7B, Qwen3-8B, or the path of a config.json")
@click.option(
    "--trainer",
    default="generic",
    show_default=True,
    metavar="NAME",
    help="for its flags and its habits",
)
@click.option(
    "--dtype",
    type=click.Choice(["mixed", "pure"]),
    default="mixed",
    show_default=True,
    help="mixed: 16 bit with float32 states; pure: all in bfloat16",
)
@click.option("--gpus", type=click.IntRange(1), default=8, show_default=True, help="cards")
@click.option(
    "--gpu-memory",
    "gpu",
    type=click.FloatRange(1),
    default=80.0,
    show_default=True,
    help="GiB of one card",
)
@click.option(
    "--sharding",
    type=click.Choice(["none", "zero1", "zero2", "zero3", "fsdp"]),
    default=None,
    help="how the trainer's states are divided (default: the trainer's)",
)
@click.option(
    "--tp", type=click.IntRange(1), default=1, show_default=True, help="cards of one sampler"
)
@click.option(
    "--micro-batch",
    "micro",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="sequences at once on one card",
)
@click.option(
    "--max-prompt", "prompt", type=click.IntRange(1), default=1024, show_default=True, help="tokens"
)
@click.option(
    "--max-completion",
    "completion",
    type=click.IntRange(1),
    default=2048,
    show_default=True,
    help="tokens",
)
@click.option(
    "--group", type=click.IntRange(1), default=8, show_default=True, help="answers to one prompt"
)
@click.option(
    "--gpu-memory-utilization",
    "share",
    type=click.FloatRange(0, 1, min_open=True),
    default=None,
    help="the sampler's share of a card (default: the trainer's)",
)
@click.option(
    "--lora-rank",
    "lora",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="0: full training",
)
@click.option(
    "--gradient-checkpointing/--no-gradient-checkpointing",
    "checkpointing",
    default=True,
    show_default=True,
)
@click.option(
    "--fused-logits",
    "fused",
    is_flag=True,
    help="the loss never makes all logits (Liger, fused kernels)",
)
@click.option(
    "--offload",
    type=click.Choice(["none", "optimizer", "all"]),
    default="none",
    show_default=True,
    help="what waits on the host between updates",
)
@click.option(
    "--reference/--no-reference",
    default=True,
    show_default=True,
    help="a reference model is loaded",
)
@click.option("--critic", is_flag=True, help="a critic of the policy's size is trained")
@click.option("--separate", is_flag=True, help="the sampler has cards of its own")
@click.option(
    "--sleep/--no-sleep",
    "sleeps",
    default=None,
    help="the sampler gives its memory back during the update (default: the trainer's)",
)
@click.option("--format", "form", default="text", show_default=True, help="text, json or markdown")
@output_option
@lang_option
def command(model: str, trainer: str, form: str, output: Path | None, lang: str | None, separate: bool,
            sharding: str | None, share: float | None, sleeps: bool | None, **sizes: Any) -> int:  # fmt: skip
    """The memory of one card on both sides, sized by the longest sequence, and what to change first.

    Exit code: 0 it fits, 1 it does not (or the sampler would not start), 2 misused.
    """
    from klinic.errors import BadUsage, did_you_mean
    from klinic.memory.budget import Plan, first_change, ledger
    from klinic.memory.models import model as shape_of
    from klinic.render._compare import known_format
    from klinic.render._memory import render
    from klinic.trainers import GENERIC, tables

    known_format(form)
    known = tables()
    if trainer not in known:
        raise BadUsage(
            f"unknown trainer {trainer!r}",
            "--trainer",
            did_you_mean(trainer, known) or f"known: {', '.join(known)}",
        )
    table = known[trainer]
    habits = HABITS.get(trainer, {})
    usual = table.knob["rollout_memory"].default if "rollout_memory" in table.knob else None
    plan = Plan(
        shape_of(model),
        sharding=sharding or habits.get("sharding", "fsdp"),
        share=share if share is not None else usual or 0.5,
        sleeps=sleeps if sleeps is not None else habits.get("sleeps", True),
        completion_logits=habits.get("completion_logits", False),
        together=not separate,
        **sizes,
    )
    found = ledger(plan)
    knobs = () if trainer == GENERIC else table.knob
    spoken = (lang or "en") if form == "json" else language(lang)
    write(render(found, first_change(found, knobs), table, form, spoken), output)
    return 0 if found.margin >= 0 and found.starts else 1
