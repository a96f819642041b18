"""``klinic rollouts RUN``: the samples behind the curve."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from klinic.cli import language
from klinic.cli._options import lang_option, output_option, write

if TYPE_CHECKING:
    from klinic.diagnosis import Diagnosis
    from klinic.rollouts.store import Store

FORMATS = ("text", "json")


@click.command("rollouts")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--top", type=click.IntRange(1, 1000), default=None, metavar="N", help="the N samples that lead"
)
@click.option("--worst", is_flag=True, help="with --top: those that come last")
@click.option(
    "--by",
    default="reward",
    show_default=True,
    metavar="MEASURE",
    help="with --top: reward, a part of it, length, acc, repeated ...",
)
@click.option(
    "--step", type=int, default=None, metavar="N", help="of this step (default: the last one)"
)
@click.option("--group", default=None, metavar="STEP/GROUP", help="the samples of one group")
@click.option(
    "--around",
    default=None,
    metavar="STEP",
    help="the best-paid before and after a step, or after the onset that was found (onset)",
)
@click.option(
    "--diff",
    nargs=2,
    type=int,
    default=None,
    metavar="STEP1 STEP2",
    help="what the best answers of STEP2 do that those of STEP1 did not",
)
@click.option("--search", default=None, metavar="TEXT", help="the samples that hold a text")
@click.option(
    "--export",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="all samples to a .jsonl or .parquet file, without their texts",
)
@click.option(
    "--with-samples", is_flag=True, help="with --export: keep prompts, completions and labels"
)
@click.option("--full", is_flag=True, help="print texts in full")
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="COLUMN=KEY",
    help="a file's own key for a column: prompt, completion, reward, step ... (repeatable)",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="text or json",
)
@output_option
@lang_option
def command(
    run: Path,
    top: int | None,
    worst: bool,
    by: str,
    step: int | None,
    group: str | None,
    around: str | None,
    diff: tuple[int, int] | None,
    search: str | None,
    export: Path | None,
    with_samples: bool,
    full: bool,
    mapping: tuple[str, ...],
    form: str,
    output: Path | None,
    lang: str | None,
) -> int:
    """Look at the samples: what the best-paid answers do, and whether the reward pays for what solves nothing.

    RUN is a run's folder or a file of rollouts. Samples are read once into a cache and never leave this machine; the run's folder is not written to.
    Exit code: 0 healthy or caution, 1 failing, 2 unreadable or misused, 3 unclear; 0 where samples are only shown.
    """
    from klinic.cli._columns import columns_given
    from klinic.errors import UnreadableInput
    from klinic.rollouts import query
    from klinic.rollouts.rollout import Rollout
    from klinic.rollouts.store import Store

    store = Store(run, columns_given(mapping, Rollout.__struct_fields__))
    spoken = (lang or "en") if form == "json" else language(lang)
    news = store.take(_progress())
    if not store.steps:
        raise UnreadableInput(
            "no rollouts were found",
            str(run),
            "name the folder the trainer dumps them to; --map COLUMN=KEY names columns of your own",
        )
    if export is not None:
        from klinic.text import say_in

        count = query.export(store, export, not with_samples)
        click.echo(say_in("rollouts", "exported", spoken, count=count, place=str(export)), err=True)
        if not with_samples:
            click.echo(say_in("rollouts", "redacted", spoken), err=True)
        return 0
    found = None
    if group is not None:
        found = query.group(store, group)
    elif search is not None:
        found = query.search(store, search, top or 10)
    elif around is not None:
        found = query.around(store, _onset(around, run, store), top or 3)
    elif diff is None and (top is not None or step is not None):
        found = query.top(store, top or 10, by, step, worst)
    if found is not None:
        from klinic.render._rollouts import listing

        write(query.as_rows(found) if form == "json" else listing(found, spoken, full), output)
        return 0
    if diff is not None:
        from klinic.render._rollouts import difference

        told = query.difference(store, *diff)
        if form == "json":
            import dataclasses
            import json

            write(json.dumps(dataclasses.asdict(told), ensure_ascii=False, indent=1) + "\n", output)
        else:
            write(difference(told, spoken), output)
        return 0
    return _whole(run, store, news.skipped, form, spoken, output)


def _whole(run: Path, store: Store, skipped: int, form: str, lang: str, output: Path | None) -> int:
    """The summary and the diagnosis, which curves and samples join in."""
    from klinic.cli.diagnose import EXIT

    answer = _answer(run, store)
    samples = answer.run.samples
    assert samples is not None
    if form == "json":
        from klinic.render.as_json import as_dict, encoded
        from klinic.rollouts.report import as_plain

        write(encoded({**as_dict(answer, lang), "samples": as_plain(samples, store.steps)}), output)
    else:
        from klinic.render import renderer
        from klinic.render._rollouts import summary

        told = summary(samples, store.steps, skipped, str(run), lang)
        write(told + "\n" + renderer("text").render([answer], lang), output)
    failing = answer.status == "failing"
    return 1 if failing else EXIT["unclear"] if answer.status == "unclear" else 0


def _answer(run: Path, store: Store) -> Diagnosis:
    from klinic.diagnose import judge
    from klinic.rollouts.report import run_of

    return judge(run_of(run, store.steps, tuple(store.index.dumps)))


def _onset(said: str, run: Path, store: Store) -> int:
    from klinic.errors import BadUsage

    if said.lstrip("-").isdigit():
        return int(said)
    if said.lower() != "onset":
        raise BadUsage(
            f"no step {said!r}",
            "--around",
            "a number, or onset for the step that the diagnosis names",
        )
    main = _answer(run, store).main
    if main is None or main.onset is None:
        raise BadUsage("the diagnosis names no onset", str(run), "give a step: --around 120")
    return main.onset.step


def _progress() -> Callable[[int, int], None] | None:
    """Says on a terminal how far the taking-in is; silent in a pipe."""
    if not sys.stderr.isatty():
        return None

    def told(done: int, of: int) -> None:
        sys.stderr.write(f"\r{min(1.0, done / of):4.0%} " if done < of else "\r     \r")
        sys.stderr.flush()

    return told
