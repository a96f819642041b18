"""``klinic rescue RUN``: go back, change one thing, try it beside a control, and write down every step."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from klinic.cli import language
from klinic.cli._options import (
    config_option,
    lang_option,
    map_option,
    trainer_option,
)

EXIT = {"rescued": 0, "healthy": 0, "planned": 0, "not-rescued": 1, "person": 3}


@click.command("rescue")
@click.argument("run", metavar="RUN")
@click.option(
    "--command",
    "call",
    default=None,
    metavar="TEXT",
    help='how your trainer goes on from a checkpoint, e.g. "python train.py --resume {checkpoint} '
    '{flag}={value} --out {out} --max-steps {until}"; also {steps} {seed} {change} {python}. '
    "Words with {flag}, {value} or {change} are left out of the control run. No shell.",
)
@click.option(
    "--fix-command",
    default=None,
    metavar="TEXT",
    help="the same for what is no flag; {fix} is reward, code or data",
)
@click.option(
    "--control-command",
    default=None,
    metavar="TEXT",
    help="the unchanged run, where leaving words out of --command is not enough",
)
@click.option(
    "--steps", default=20, show_default=True, type=click.IntRange(6), help="steps compared"
)
@click.option(
    "--on", default=100, show_default=True, type=click.IntRange(20), help="steps to go on if better"
)
@click.option(
    "--resamples",
    default=None,
    type=click.IntRange(1, 20),
    help="runs of either arm (default: 2 in the lab, else 1)",
)
@click.option(
    "--timeout",
    default=None,
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="end a run that takes longer",
)
@click.option("--checkpoint", default=None, metavar="DIR", help="go back to this one instead")
@click.option("--from-start", is_flag=True, help="from scratch, without a checkpoint")
@click.option(
    "--continue",
    "carry",
    default=None,
    metavar="NEWRUN",
    help="judge a run you made after fixing what is no flag",
)
@click.option(
    "--further",
    default=2,
    show_default=True,
    type=click.IntRange(0, 4),
    help="if no first value rescues: values beyond it for learning rates, coefficients and limits",
)
@click.option("--retry", is_flag=True, help="run again the commands that failed before")
@click.option("--dry-run", is_flag=True, help="say what would be run, and run nothing")
@click.option(
    "--anyway", is_flag=True, help="try the changes although the run is not failing (only caution)"
)
@click.option(
    "-o",
    "--output",
    "into",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="folder of the rescue (default: RUN-rescue beside the run)",
)
@click.option("--format", "form", default="text", show_default=True, help="text or json")
@map_option
@config_option
@trainer_option
@lang_option
def command(
    run: str,
    call: str | None,
    fix_command: str | None,
    control_command: str | None,
    steps: int,
    on: int,
    resamples: int | None,
    timeout: float | None,
    checkpoint: str | None,
    from_start: bool,
    carry: str | None,
    further: int,
    retry: bool,
    dry_run: bool,
    anyway: bool,
    into: Path | None,
    form: str,
    mapping: tuple[str, ...],
    config: Path | None,
    trainer: str | None,
    lang: str | None,
) -> int:
    """Diagnose RUN, go back to a checkpoint before the onset, and try one change after the other beside a control.

    Interrupted at any moment, the same command goes on where it stopped. RUN's own folder is never written to. Exit
    code: 0 rescued, 1 not rescued, 2 unreadable or misused, 3 a person must fix something first.
    """
    from klinic.cli.diagnose import _colour
    from klinic.errors import BadUsage
    from klinic.read import parse_mapping
    from klinic.render._rescue import render
    from klinic.rescue.outcome import Wish
    from klinic.rescue.person import carried_on
    from klinic.rescue.trials import rescue

    if form not in ("text", "json"):
        raise BadUsage(f"unknown format {form!r}", "--format", "known: text, json")
    spoken = (lang or "en") if form == "json" else language(lang)
    wish = Wish(
        command=call,
        fix_command=fix_command,
        control_command=control_command,
        steps=steps,
        on=on,
        resamples=resamples,
        timeout=timeout,
        checkpoint=checkpoint,
        from_start=from_start,
        dry=dry_run,
        anyway=anyway,
        further=further,
        retry=retry,
    )
    options: dict[str, Any] = {
        "trainer": trainer,
        "mapping": parse_mapping(mapping),
        "config": config,
    }
    if carry is not None:
        found = carried_on(run, carry, into, wish, **options)
    elif sys.stderr.isatty():
        from klinic.cli._live import live

        with live(language(lang)) as tell:
            found = rescue(run, into, wish, tell=tell, **options)
    else:
        found = rescue(run, into, wish, tell=_failures(language(lang)), **options)
    click.echo(render(found, form, spoken, colour=_colour()), nl=False)
    return EXIT[found.status]


def _failures(lang: str) -> Any:
    """In a pipe only what went wrong is told."""
    from klinic.cli._live import failed

    def tell(kind: str, **what: Any) -> None:
        if kind == "failed":
            click.echo(failed(lang, **what), err=True)

    return tell
