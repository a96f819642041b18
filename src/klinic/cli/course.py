"""``klinic course``: the exercises, in a shell or one command at a time."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option


@click.command("course", context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, metavar="[COMMAND [ARGUMENTS]...]")
@click.option(
    "--progress",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="where progress is kept (default: course.json in klinic's data folder)",
)
@lang_option
def command(words: tuple[str, ...], progress: Path | None, lang: str | None) -> int:
    """Learn to read curves: two dozen exercises, in a shell or one COMMAND at a time.

    Without a COMMAND a shell opens, which also reads a pipe. `klinic course help` lists the commands. Exit code: 0,
    1 for a wrong answer, 2 for misuse.
    """
    from klinic.course.progress import default_place
    from klinic.course.shell import once, shell

    place, spoken = progress or default_place(), language(lang)
    if not words:
        return shell(place, spoken)
    given = {"--progress": str(progress) if progress else "", "--lang": lang or ""}
    return once(place, spoken, words, {name: value for name, value in given.items() if value})
