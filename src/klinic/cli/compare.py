"""``klinic compare A B``: what was set differently, which curve parts first, and both diagnoses."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option, map_option, output_option, trainer_option, write


@click.command("compare")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--format", "form", default="text", show_default=True, help="text, json or markdown")
@output_option
@map_option
@trainer_option
@lang_option
def command(
    a: str,
    b: str,
    form: str,
    output: Path | None,
    mapping: tuple[str, ...],
    trainer: str | None,
    lang: str | None,
) -> int:
    """Set two runs side by side: which setting differs, which curve parts first and where, both diagnoses.

    Only common steps and metrics of one definition are compared, and a difference counts in the noise of the two
    runs themselves.
    """
    from klinic.compare.two_runs import compare
    from klinic.read import parse_mapping
    from klinic.render._compare import known_format, render

    known_format(form)
    found = compare(a, b, trainer=trainer, mapping=parse_mapping(mapping))
    write(render(found, form, (lang or "en") if form == "json" else language(lang)), output)
    return 0
