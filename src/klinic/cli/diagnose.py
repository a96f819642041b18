"""``klinic diagnose RUN...``: the four answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from klinic.cli import language
from klinic.cli._options import (
    config_option,
    lang_option,
    map_option,
    output_option,
    trainer_option,
)
from klinic.settings import settings

if TYPE_CHECKING:
    from klinic.diagnosis import Diagnosis

ENDINGS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}
EXIT = {"healthy": 0, "caution": 0, "failing": 1, "unclear": 3}


@click.command("diagnose")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--format",
    "form",
    default=None,
    help="text, json, markdown, github or html; unless given, by the ending of the output file, else text",
)
@output_option
@click.option("--only", multiple=True, metavar="SLUG", help="check only this failure (repeatable)")
@click.option("--skip", multiple=True, metavar="SLUG", help="leave this failure out (repeatable)")
@click.option(
    "--fail-on",
    type=click.Choice(["stop", "act", "caution"]),
    default=lambda: settings().fail_on,
    show_default="act",
    help="exit 1 from this severity on",
)
@click.option(
    "--all", "everything", is_flag=True, help="list all that is ruled out and not checked"
)
@click.option(
    "--with-samples",
    is_flag=True,
    help="with --format html: write a few prompts and completions too",
)
@map_option
@config_option
@trainer_option
@lang_option
def command(
    runs: tuple[str, ...],
    form: str | None,
    output: Path | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    fail_on: str,
    everything: bool,
    with_samples: bool,
    mapping: tuple[str, ...],
    config: Path | None,
    trainer: str | None,
    lang: str | None,
) -> int:
    """Is it healthy, or which failure is it; since when; what to change first; where to go back to.

    RUN is a log file, a folder, or - for standard input; several runs give a table, worst first (--all: each in full).
    Exit code: 0 healthy or caution, 1 failing, 2 unreadable
    or misused, 3 unclear.
    """
    from klinic.cli._options import write
    from klinic.diagnose import diagnose_all, worst_first
    from klinic.errors import BadUsage
    from klinic.failures import SEVERITIES
    from klinic.read import parse_mapping
    from klinic.render import renderer

    form = form or ENDINGS.get(output.suffix if output else "", "text")
    if with_samples and form != "html":
        raise BadUsage(
            "samples go into a report only",
            "--with-samples",
            "add --format html -o report.html; klinic rollouts shows samples in the terminal",
        )
    show = renderer(form)
    spoken = (lang or "en") if form == "json" else language(lang)
    found = []
    for run in runs:
        found += diagnose_all(
            run,
            only=only,
            skip=(*settings().skip, *skip),
            trainer=trainer,
            mapping=parse_mapping(mapping),
            config=config,
        )
    found = worst_first(found)
    told = show.render(
        found,
        spoken,
        everything=everything,
        colour=output is None and _colour(),
        samples=_samples(found, spoken) if with_samples else None,
    )
    write(told, output)
    worst = [
        SEVERITIES.index(f.severity)
        for a in found
        for f in a.findings
        if f.status in ("present", "consequence") and f.severity
    ]
    if worst and min(worst) <= SEVERITIES.index(fail_on):
        return 1
    return EXIT["unclear"] if found and all(answer.status == "unclear" for answer in found) else 0


def _samples(found: Sequence[Diagnosis], lang: str) -> dict[str, list[dict[str, Any]]]:
    """What to show of each run, by its path; a run without samples is said to be one."""
    from klinic.rollouts.shown import shown
    from klinic.text import say_in

    samples = {}
    for answer in found:
        onset = answer.main.onset if answer.main else None
        samples[answer.run.path] = shown(answer.run, onset.step if onset else None)
        if not samples[answer.run.path]:
            click.echo(say_in("rollouts", "no_samples", lang, place=answer.run.path), err=True)
    return samples


def _colour() -> bool:
    import os

    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()
