"""``klinic schema``: the JSON Schema of ``klinic diagnose --format json``."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli._options import output_option, write


@click.command("schema")
@output_option
def command(output: Path | None) -> int:
    """Print the JSON Schema of the answer."""
    import json

    from klinic.render._schema import SCHEMA

    write(json.dumps(SCHEMA, indent=1) + "\n", output)
    return 0
