"""Options that several verbs share."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from klinic.files import write_whole
from klinic.settings import settings


def _with_settings(
    ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    return (*(f"{role}={key}" for role, key in settings().map.items()), *given)


lang_option = click.option(
    "--lang", type=click.Choice(["en", "zh"]), default=None, help="language (default: the locale's)"
)
map_option = click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="METRIC=KEY",
    callback=_with_settings,
    help="the log's own key for a metric, e.g. entropy=my/key (repeatable)",
)
config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="the run's configuration, YAML or JSON",
)
trainer_option = click.option(
    "--trainer",
    default=None,
    metavar="NAME",
    help="trl, verl or generic, where the log does not tell",
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="write to a file instead of standard output",
)


def write(text: str, output: Path | None) -> None:
    """Print, or write to a temporary file and rename: nothing is left half-written."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_whole(output, text.encode())
