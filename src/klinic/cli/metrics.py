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
from klinic.run import Curve, Run


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
    from klinic.advise.bugs import known_bugs
    from klinic.read import parse_mapping, read_all
    from klinic.render._layout import wrap
    from klinic.text import figure, say
    from klinic.trainers import GENERIC

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
        lines += _missing(one, spoken)
        if only_missing and one.trainer.name == GENERIC:
            lines += _dashboard(one, spoken)
    write("\n".join(lines) + "\n", output)
    return 0


def _missing(run: Run, lang: str) -> list[str]:
    """One paragraph a role that is not logged: its flag or line, and what cannot be diagnosed without it."""
    from klinic.advise.missing import lacks
    from klinic.diagnose import judge
    from klinic.render._layout import wrap
    from klinic.render.as_json import how
    from klinic.text import say, say_in

    lines = []
    for lack in lacks(judge(run)):
        role = lack.missing.metric
        told = [say("metrics.missing", lang, metric=role)]
        if advice := how(lack.missing, lang):
            told.append(
                say("text.how_to_log", lang, how=advice)
                if lack.own
                else say_in("advise", "no-flag", lang, trainer=run.trainer.title, how=advice)
            )
        if lack.stand_in:
            told.append(say_in("advise", "stand-in", lang, metric=lack.stand_in))
        if lack.blind:
            told.append(say_in("advise", "blind", lang, failures=", ".join(lack.blind)))
        lines.append(wrap(("；" if lang == "zh" else "; ").join(told), "  ", "      "))
    return lines


def _dashboard(run: Run, lang: str) -> list[str]:
    """The minimal dashboard of a hand-written loop as a checklist."""
    from klinic.advise.missing import checklist
    from klinic.render._layout import wrap
    from klinic.text import say_in

    lines, when = [say_in("advise", "dashboard.title", lang)], ""
    for item, logged in checklist(run):
        if item.when != when:
            when = item.when
            lines.append("  " + say_in("advise", f"dashboard.{when}", lang))
        what = item.zh if lang == "zh" else item.en
        box = "[x]" if logged else "[ ]"
        lines.append(wrap(f"{box} {item.key + ': ' if item.key else ''}{what}", "    ", "        "))
    return lines


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
    from klinic.advise.conversions import conversion_in
    from klinic.render._layout import wrap
    from klinic.text import say

    m = curve.metric
    what = f"{m.source_key}  {say('text.read_as', lang)} {m.name} [{m.unit}], {len(curve.values)}"
    done = conversion_in(m.conversion, lang) if m.conversion else ""
    how = [m.definition, done, say("metrics.derived", lang) if m.derived_from else ""]
    return [
        wrap(what, "  ", "      "),
        wrap("; ".join(part for part in how if part), "      ", "      "),
    ]
