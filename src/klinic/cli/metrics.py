"""``klinic metrics RUN``: how each key of the log was read."""

from __future__ import annotations

from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import (
    config_option,
    lang_option,
    map_option,
    output_option,
    trainer_option,
    write,
)


@click.command("metrics")
@click.argument("run", metavar="RUN")
@click.option(
    "--missing",
    "only_missing",
    is_flag=True,
    help="only what is not logged, and the flag that logs it",
)
@map_option
@config_option
@trainer_option
@lang_option
@output_option
def command(
    run: str,
    only_missing: bool,
    mapping: tuple[str, ...],
    config: Path | None,
    trainer: str | None,
    lang: str | None,
    output: Path | None,
) -> int:
    """How each key was read: its canonical name, unit, definition and conversion; what is missing; the configuration."""
    from klinic.advise import how_to_log
    from klinic.read import parse_mapping, read_all
    from klinic.render._layout import wrap
    from klinic.render.as_json import how
    from klinic.text import figure, say
    from klinic.vitals import STAND_INS, VITALS, players

    spoken = language(lang)
    lines: list[str] = []
    for one in read_all(run, trainer=trainer, mapping=parse_mapping(mapping), config=config):
        lines.append(
            f"{one.name}: "
            + say(
                "metrics.trainer",
                spoken,
                trainer=one.trainer.title,
                because=one.trainer.because or "-",
            )
        )
        if not only_missing:
            for curve in one.curves.values():
                m = curve.metric
                lines.append(
                    wrap(
                        f"{m.source_key}  {say('text.read_as', spoken)} {m.name} [{m.unit}], {len(curve.values)}",
                        "  ",
                        "      ",
                    )
                )
                lines.append(
                    wrap(
                        m.definition
                        + (f"; {m.conversion}" if m.conversion else "")
                        + (f"; {say('metrics.derived', spoken)}" if m.derived_from else ""),
                        "      ",
                        "      ",
                    )
                )
            for name, (en, zh) in one.absent.items():
                lines.append(
                    wrap(
                        f"{name}  {say('metrics.absent', spoken)}: {zh if spoken == 'zh' else en}",
                        "  ",
                        "      ",
                    )
                )
            for setting in one.config.values():
                lines.append(f"  {setting.flag} = {figure(setting.value)}")
            if one.unread_keys:
                lines.append(
                    wrap(
                        say("metrics.unread", spoken, keys=", ".join(one.unread_keys)), "  ", "    "
                    )
                )
        for role in [*VITALS, "zero_std", "trunc", "mismatch", "grad_norm"]:
            if not players(role, one.curves) and not any(
                players(other, one.curves) for other in STAND_INS.get(role, ())
            ):
                advice = how(how_to_log(one, role), spoken)
                lines.append(
                    wrap(
                        say("metrics.missing", spoken, metric=role)
                        + (f"; {say('text.how_to_log', spoken, how=advice)}" if advice else ""),
                        "  ",
                        "      ",
                    )
                )
    write("\n".join(lines) + "\n", output)
    return 0
