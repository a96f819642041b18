"""``klinic metrics RUN``: how each key of the log was read."""

from __future__ import annotations

from collections.abc import Iterable
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
from klinic.run import Curve


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
    from klinic.advise.bugs import known_bugs
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
            for layer, curves in _by_layer(one.curves.values()):
                lines.append(say(f"layer.{layer}", spoken))
                for curve in curves:
                    lines += _how_read(curve, spoken)
            for name, (en, zh) in one.absent.items():
                lines.append(
                    wrap(
                        f"{name}  {say('metrics.absent', spoken)}: {zh if spoken == 'zh' else en}",
                        "  ",
                        "      ",
                    )
                )
            for known in known_bugs(one):
                lines.append(wrap(known.text(one, spoken), "  ! ", "      "))
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


def _by_layer(curves: Iterable[Curve]) -> list[tuple[str, list[Curve]]]:
    """The three layers of seed 001 1.3 in their order, then what belongs to none; empty ones are left out."""
    from klinic.vitals import LAYERS, ROLES, role_of

    found: dict[str, list[Curve]] = {layer: [] for layer in (*LAYERS, "other")}
    for curve in curves:
        name = curve.metric.name
        role = role_of(name)
        evaluated = name.startswith(("eval", "reward"))
        layer = ROLES[role].layer if role else "behaviour" if evaluated else "other"
        found[layer].append(curve)
    return [(layer, some) for layer, some in found.items() if some]


def _how_read(curve: Curve, lang: str) -> list[str]:
    from klinic.render._layout import wrap
    from klinic.text import say

    m = curve.metric
    what = f"{m.source_key}  {say('text.read_as', lang)} {m.name} [{m.unit}], {len(curve.values)}"
    how = [m.definition, m.conversion, say("metrics.derived", lang) if m.derived_from else ""]
    return [
        wrap(what, "  ", "      "),
        wrap("; ".join(part for part in how if part), "      ", "      "),
    ]
