"""``klinic smoke OLD NEW``: did the one change help, judged against a control."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option, map_option, output_option, trainer_option, write

EXIT = {"better": 0, "worse": 1, "inconclusive": 3}

KIND = {"reward": "fix-reward", "code": "fix-code", "data": "change-data"}


@click.command("smoke")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--steps", default=20, show_default=True, type=click.IntRange(1), help="steps judged")
@click.option(
    "--control",
    "controls",
    multiple=True,
    metavar="DIR",
    help="the unchanged configuration run again (repeatable; default: OLD's own steps)",
)
@click.option(
    "--also", multiple=True, metavar="DIR", help="one more run with the change (repeatable)"
)
@click.option("--metric", default=None, help="judge by this curve instead of OLD's first mover")
@click.option(
    "--better",
    type=click.Choice(["higher", "lower"]),
    default=None,
    help="which side of --metric is good, where OLD's failure does not say",
)
@click.option(
    "--fixed",
    type=click.Choice(["reward", "code", "data"]),
    default=None,
    help="the change is no flag: the reward's code, other code, or the data",
)
@click.option(
    "--from",
    "start",
    type=int,
    default=None,
    metavar="STEP",
    help="first step after the checkpoint (default: where NEW leaves OLD)",
)
@click.option("--format", "form", default="text", show_default=True, help="text, json or markdown")
@output_option
@map_option
@trainer_option
@lang_option
def command(
    old: str,
    new: str,
    steps: int,
    controls: tuple[str, ...],
    also: tuple[str, ...],
    metric: str | None,
    better: str | None,
    fixed: str | None,
    start: int | None,
    form: str,
    output: Path | None,
    mapping: tuple[str, ...],
    trainer: str | None,
    lang: str | None,
) -> int:
    """Judge a short run with one change (NEW, resumed from a checkpoint of OLD) against the same steps without it.

    Exit code: 0 better, 1 worse, 2 unreadable or misused, 3 inconclusive.
    """
    from klinic.cli.diagnose import _colour
    from klinic.compare.smoke import smoke
    from klinic.read import parse_mapping
    from klinic.render._compare import known_format
    from klinic.render._smoke import render

    known_format(form)
    found = smoke(
        old,
        [new, *also],
        controls,
        steps=steps,
        start=start,
        metric=metric,
        better=better,
        kind=KIND.get(fixed or ""),
        trainer=trainer,
        mapping=parse_mapping(mapping),
    )
    spoken = (lang or "en") if form == "json" else language(lang)
    write(render(found, form, spoken, colour=output is None and _colour()), output)
    return EXIT[found.verdict]
