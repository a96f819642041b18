"""``klinic audit-reward MODULE:FUNCTION``: what a reward function pays for, before the run."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option, output_option, write


@click.command("audit-reward")
@click.argument("function", metavar="MODULE:FUNCTION")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="prompts and answers: JSONL, JSON, CSV or Parquet; completions with a verdict, too",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="COLUMN=KEY",
    help="the file's own key: prompt, answer, completion, right (repeatable)",
)
@click.option(
    "--signature",
    default="auto",
    show_default=True,
    metavar="HOW",
    help="trl, verl, plain, or what each argument is: prompt,completion,answer",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.05,
    show_default=True,
    help="an exploit pays from this share of what a right answer earns above a wrong one",
)
@click.option(
    "--rows",
    type=click.IntRange(1, 100_000),
    default=16,
    show_default=True,
    help="rows that are tried, evenly over the file",
)
@click.option(
    "--timeout", type=float, default=5.0, show_default=True, metavar="SECONDS", help="for each call"
)
@click.option(
    "--limit",
    type=float,
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="for all calls together",
)
@click.option(
    "--python",
    default=None,
    metavar="PATH",
    help="the Python that imports the function (default: this one)",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text or json",
)
@output_option
@lang_option
def command(
    function: str,
    data: Path,
    mapping: tuple[str, ...],
    signature: str,
    threshold: float,
    rows: int,
    timeout: float,
    limit: float,
    python: str | None,
    form: str,
    output: Path | None,
    lang: str | None,
) -> int:
    """Try to cheat a reward function before a policy does: exploits made from your own data, and what each would earn.

    FUNCTION is module:function or file.py:function, in TRL's, verl's or a plain signature; it runs in a process of its own.
    Exit code: 0 no exploit pays, 1 one pays, 2 unreadable or misused.
    """
    from klinic.audit.caller import Caller
    from klinic.audit.measure import Audit
    from klinic.audit.rows import NAMES, read_rows
    from klinic.cli._columns import columns_given
    from klinic.render._audit import as_json, as_text

    spoken = (lang or "en") if form == "json" else language(lang)
    found = read_rows(data, columns_given(mapping, NAMES))
    with Caller(function, python, timeout, limit) as caller:
        report = Audit(
            caller, found, signature=signature, threshold=threshold, rows=rows, templates={}
        ).run()
    write(as_json(report) if form == "json" else as_text(report, spoken), output)
    return 1 if report.holes else 0
