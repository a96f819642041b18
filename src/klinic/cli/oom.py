"""``klinic oom FILE``: which side ran out of memory, at what, and the one thing to change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import config_option, lang_option, output_option, trainer_option, write
from klinic.cli.diagnose import EXIT, _colour
from klinic.diagnosis import Diagnosis, Note

UNASKED = ("note.no-metrics", "note.unread", "note.few", "note.thin", "note.none", "note.counted")


@click.command("oom")
@click.argument("runs", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "form",
    default="text",
    show_default=True,
    help="text, json, markdown, github or html",
)
@output_option
@config_option
@trainer_option
@lang_option
def command(
    runs: tuple[str, ...],
    form: str,
    output: Path | None,
    config: Path | None,
    trainer: str | None,
    lang: str | None,
) -> int:
    """Read a traceback, or the log it stands in: which side ran out of memory, at what, and what to change first.

    FILE is any text, a run's folder, or - for standard input; no metrics are needed. A crash that is no memory error
    is said to be what it is. Exit code: 0 the run lived on, 1 a memory error, 2 unreadable or misused, 3 none found.
    """
    from klinic.diagnose import diagnose_all
    from klinic.render import renderer

    show = renderer(form)
    spoken = (lang or "en") if form == "json" else language(lang)
    found = [
        _told(answer)
        for run in runs
        for answer in diagnose_all(run, only=["out-of-memory"], trainer=trainer, config=config)
    ]
    write(show.render(found, spoken, colour=output is None and _colour()), output)
    main = [answer for answer in found if answer.main is not None]
    return max((EXIT[answer.status] for answer in main), default=EXIT["unclear"])


def _told(answer: Diagnosis) -> Diagnosis:
    """The same answer, silent of the metrics that a bare traceback cannot have; that it holds no error is said."""
    notes = [n for n in answer.notes if n.sentence not in UNASKED]
    if answer.main is None:
        notes.insert(0, Note(None, "note.no-memory-error"))
    return replace(answer, notes=tuple(notes))
