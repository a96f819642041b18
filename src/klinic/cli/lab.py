"""``klinic lab``: a small real trainer, and one named fault for each way to break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from klinic.cli import language
from klinic.cli._options import lang_option

EIGHT = ("reward", "acc", "entropy", "kl", "adv_std", "clip_frac", "ratio_mean", "len")
set_option = click.option(
    "--set", "changes", multiple=True, metavar="NAME=VALUE", help="another setting (repeatable)"
)
steps_option = click.option(
    "--steps", type=click.IntRange(1, 100_000), default=200, show_default=True
)
every_option = click.option(
    "--checkpoint-every", type=click.IntRange(0), default=20, show_default=True, help="0: none"
)


@click.group("lab")
def command() -> None:
    """Train a tiny real policy in NumPy, healthy or with one named fault that breaks it by itself."""


@command.command("list")
@click.option("--settings", is_flag=True, help="list every setting of the trainer instead")
@lang_option
def list_(settings: bool, lang: str | None) -> int:
    """What each fault switches."""
    from klinic.lab.faults import FAULTS, Strengths
    from klinic.lab.settings import DEFAULTS, GROUPS
    from klinic.text import say

    spoken = language(lang)
    if settings:
        for name, value in DEFAULTS.items():
            group = next((g for g, names in GROUPS.items() if name in names), "")
            click.echo(f"{name:24} {value!s:10} {group and f'--fix {group}'}".rstrip())
        return 0
    for fault in FAULTS.values():
        click.echo(f"{fault.name}\n  {fault.what[spoken]}")
        parts = [
            f"{name}={value.usual} ({value.mild}, {value.strong})"
            if isinstance(value, Strengths)
            else f"{name}={value}"
            for name, value in fault.settings.items()
        ]
        if fault.healthy:
            always = "  ".join(f"{name}={value}" for name, value in fault.healthy.items())
            click.echo(say("lab.always", spoken, parts=always))
        if parts:
            click.echo(say("lab.switches", spoken, at=fault.at, parts="  ".join(parts)))
    click.echo(say("lab.strengths", spoken))
    return 0


@command.command("run")
@click.option("--fault", default="healthy", show_default=True, metavar="NAME")
@click.option(
    "--task", type=click.Choice(["max", "min", "odd", "sum"]), default="max", show_default=True
)
@click.option(
    "--base", type=click.IntRange(0, 2), default=0, show_default=True, help="which base model"
)
@click.option("--seed", type=int, default=1, show_default=True)
@steps_option
@click.option(
    "--strength", type=click.Choice(["mild", "usual", "strong"]), default="usual", show_default=True
)
@click.option(
    "--at", type=click.IntRange(0), default=None, help="step at which the fault is switched"
)
@set_option
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR")
@lang_option
def run_(
    fault: str,
    task: str,
    base: int,
    seed: int,
    steps: int,
    strength: str,
    at: int | None,
    changes: tuple[str, ...],
    checkpoint_every: int,
    output: Path,
    lang: str | None,
) -> int:
    """Train from a base model, and write metrics, samples, checkpoints and a label to DIR."""
    from klinic.lab.runs import run
    from klinic.lab.settings import parse_changes

    with _shown(language(lang), steps) as progress:
        run(
            output,
            fault,
            task=task,
            base=base,
            seed=seed,
            steps=steps,
            strength=strength,
            at=at,
            changes=parse_changes(changes),
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
    return _said(output, language(lang))


@command.command("resume")
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--steps", type=click.IntRange(1, 100_000), default=20, show_default=True)
@set_option
@click.option(
    "--fix",
    multiple=True,
    type=click.Choice(["reward", "code", "data"]),
    help="put a group of settings back to the healthy trainer's (repeatable)",
)
@click.option("--reseed", type=int, default=None, metavar="N", help="other samples from here on")
@every_option
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR")
@lang_option
def resume_(
    checkpoint: Path,
    steps: int,
    changes: tuple[str, ...],
    fix: tuple[str, ...],
    reseed: int | None,
    checkpoint_every: int,
    output: Path,
    lang: str | None,
) -> int:
    """Go on from a checkpoint, unchanged (the same steps bit for bit) or with some settings changed."""
    from klinic.lab.runs import resume
    from klinic.lab.settings import parse_changes

    with _shown(language(lang), steps) as progress:
        resume(
            checkpoint,
            output,
            steps=steps,
            changes=parse_changes(changes),
            fix=fix,
            reseed=reseed,
            checkpoint_every=checkpoint_every,
            progress=progress,
        )
    return _said(output, language(lang))


@command.command("warmup")
@click.argument("base", type=click.IntRange(0, 2))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE.npz")
@lang_option
def warmup_(base: int, output: Path, lang: str | None) -> int:
    """Make a shipped base model again: 5,000 supervised steps, under a minute."""
    import io

    import numpy as np
    from threadpoolctl import threadpool_limits

    from klinic.files import write_whole
    from klinic.lab.warmup import BASES, STEPS, warm_up

    with _shown(language(lang), STEPS) as progress, threadpool_limits(limits=1):
        weights = warm_up(
            BASES[base],
            told=None
            if progress is None
            else lambda step, loss: progress({"done": step + 1, "of": STEPS, "loss": loss}),
        )
    stream = io.BytesIO()
    np.savez(stream, **weights)  # type: ignore[arg-type]
    write_whole(output, stream.getvalue())
    click.echo(str(output))
    return 0


@contextmanager
def _shown(lang: str, steps: int) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """A progress bar and live sparklines on a terminal, nothing in a pipe."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.console import Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    from rich.text import Text

    from klinic.render.sparkline import sparkline

    bar = Progress(BarColumn(40), MofNCompleteColumn(), TimeRemainingColumn(), console=console)
    task = bar.add_task("", total=steps)
    history: dict[str, list[float]] = {name: [] for name in EIGHT}
    with Live(bar, console=console, refresh_per_second=4, transient=True) as live:

        def progress(row: dict[str, Any]) -> None:
            bar.update(task, completed=row["done"])
            for name in EIGHT:
                if isinstance(row.get(name), int | float):
                    history[name].append(float(row[name]))
            lines = [
                Text(f"{name:11} {values[-1]:9.4g}  {sparkline(values, 50)}")
                for name, values in history.items()
                if values
            ]
            live.update(Group(bar, *lines))

        yield progress


def _said(output: Path, lang: str) -> int:
    """What was injected and what became manifest."""
    import json

    from klinic.text import say

    label = json.loads((output / "label.json").read_text(encoding="utf-8"))
    found = label["manifest"]
    if label["failure"] is None:
        text = say("lab.nothing", lang, fault=label["fault"])
    elif found["shows"]:
        text = say(
            "lab.shows", lang, failure=label["failure"], at=label["inject_step"], step=found["step"]
        )
    else:
        text = say("lab.hidden", lang, failure=label["failure"], at=label["inject_step"])
    click.echo(f"{output}\n{text}")
    return 0
