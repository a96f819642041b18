"""``klinic plot RUN -o curves.png``: the eight curves."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import config_option, lang_option, map_option, trainer_option


@click.command("plot")
@click.argument("run", metavar="RUN")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("klinic.png"),
    show_default=True,
    metavar="FILE",
    help="the PNG to write",
)
@click.option(
    "--terminal", is_flag=True, help="draw in the terminal instead, with block characters"
)
@map_option
@config_option
@trainer_option
@lang_option
def command(
    run: str,
    output: Path,
    terminal: bool,
    mapping: tuple[str, ...],
    config: Path | None,
    trainer: str | None,
    lang: str | None,
) -> int:
    """Draw the eight vital curves in their fixed order, the onset shaded through all of them."""
    from klinic.diagnose import diagnose_all
    from klinic.errors import UnreadableInput
    from klinic.files import write_whole
    from klinic.read import parse_mapping

    found = diagnose_all(run, trainer=trainer, mapping=parse_mapping(mapping), config=config)
    with_curves = [answer for answer in found if answer.run.curves]
    if not with_curves:
        raise UnreadableInput("no metrics to draw", run, "klinic diagnose says what the log holds")
    if terminal:
        from klinic.render._signs import pictures

        click.echo("\n".join(pictures(with_curves[0], language(lang))))
        return 0
    from klinic.render.png import drawable, render

    write_whole(output, render(with_curves[0], language(lang)))
    if drawable(language(lang)) != language(lang):
        click.echo(
            "提示：没有中文字体，图中文字为英文；Debian/Ubuntu: apt install fonts-noto-cjk",
            err=True,
        )
    click.echo(str(output))
    return 0
