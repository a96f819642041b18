"""Options that several verbs share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from klinic.errors import UnreadableInput

lang_option = click.option(
    "--lang", type=click.Choice(["en", "zh"]), default=None, help="language (default: the locale's)"
)
map_option = click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="METRIC=KEY",
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
    write_bytes(text.encode(), output)


def write_bytes(data: bytes, output: Path) -> None:
    """Write a file whole or not at all. Raises UnreadableInput where the folder cannot be written."""
    import tempfile

    try:
        handle, name = tempfile.mkstemp(dir=output.resolve().parent, prefix=f".{output.name}.")
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be written ({trouble.strerror})",
            str(output),
            "name a folder that exists and may be written to",
        ) from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(name, 0o666 & ~mask)
    os.replace(name, output)
