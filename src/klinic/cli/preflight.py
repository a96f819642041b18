"""``klinic preflight``: is the code right, checked on one batch before the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from klinic.cli import language
from klinic.cli._options import lang_option, output_option, write

FORMATS = ("text", "json")


@click.command("preflight")
@click.argument("function", metavar="[MODULE:FUNCTION]", required=False)
@click.option(
    "--batch",
    "file",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="one batch instead: an .npz, .pt or .safetensors whose arrays are named like Batch's fields",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="the policy, as save_pretrained wrote it, with its tokenizer",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="the reference, likewise",
)
@click.option("--only", multiple=True, metavar="CHECK", help="run only this check (repeatable)")
@click.option("--skip", multiple=True, metavar="CHECK", help="leave this check out (repeatable)")
@click.option("--format", "form", default="text", show_default=True, help="text or json")
@output_option
@lang_option
def command(
    function: str | None,
    file: Path | None,
    model: Path | None,
    reference: Path | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    form: str,
    output: Path | None,
    lang: str | None,
) -> int:
    """Check the code on one batch before the run: masks, tokenizers, log-probs, signs, versions, the gradient.

    FUNCTION takes nothing and returns a klinic.preflight.Batch, alone or with a dict of preflight's arguments (tokenizer, model, loss ...).
    Exit code: 0 all that was checked passed, 1 one failed, 2 unreadable or misused, 3 nothing could be checked.
    """
    from klinic.cli.diagnose import _colour
    from klinic.errors import BadUsage, did_you_mean
    from klinic.preflight import preflight
    from klinic.preflight._load import from_file, from_folder, from_function
    from klinic.render.as_json import encoded

    if form not in FORMATS:
        raise BadUsage(
            f"unknown format {form!r}",
            "--format",
            did_you_mean(form, FORMATS) or f"known: {', '.join(FORMATS)}",
        )
    if (function is None) == (file is None):
        raise BadUsage(
            "one batch is needed", "klinic preflight", "name MODULE:FUNCTION, or --batch FILE"
        )
    more: dict[str, Any] = {}
    if function is not None:
        batch, more = from_function(function)
    else:
        assert file is not None
        batch = from_file(file)
    if model is not None:
        more["model"], more["tokenizer"] = from_folder(model, "--model")
    if reference is not None:
        more["reference_model"], more["reference_tokenizer"] = from_folder(reference, "--reference")
    named = {"only": only or more.pop("only", ()), "skip": (*skip, *more.pop("skip", ()))}
    report = preflight(batch, **{**more, **named})
    if form == "json":
        told = encoded(report.as_dict(lang or "en"))
    else:
        told = report.text(language(lang), colour=output is None and _colour())
    write(told, output)
    return report.exit_code
