"""``klinic explain NAME``: a failure's page, or one row of the table of metrics."""

from __future__ import annotations

import pkgutil
from pathlib import Path

import click

from klinic.cli import language
from klinic.cli._options import lang_option, output_option, write
from klinic.errors import BadUsage, did_you_mean


@click.command("explain")
@click.argument("name", required=False)
@click.option(
    "--thresholds", is_flag=True, help="add the failure's thresholds, as klinic.toml names them"
)
@lang_option
@output_option
def command(name: str | None, thresholds: bool, lang: str | None, output: Path | None) -> int:
    """Print the page of a failure (entropy-collapse), or what a metric means (entropy). Without a name: list all."""
    from klinic.text import body, page
    from klinic.vitals import ROLES

    spoken = language(lang)
    slugs = failures()
    if name is None:
        width = max(map(len, slugs))
        rows = [f"{slug:{width}}  {page(slug, spoken).summary}" for slug in slugs]
        write("\n".join([*rows, "", " ".join(ROLES)]) + "\n", output)
        return 0
    asked = name.lower().replace("_", "-")
    if asked in slugs:
        found = page(asked, spoken)
        text = f"# {found.title}\n\n{found.summary}\n\n{body(asked, spoken)}"
        write(text + (_thresholds(asked, spoken) if thresholds else ""), output)
        return 0
    role = name.lower().replace("-", "_")
    if role in ROLES:
        write(_metric(role, spoken), output)
        return 0
    raise BadUsage(
        f"unknown failure or metric {name!r}",
        "klinic explain",
        did_you_mean(asked, [*slugs, *ROLES]) or "klinic explain lists all",
    )


def failures() -> list[str]:
    """Slugs of all failures, read off the folder: a page is printed without importing any rule."""
    import importlib.util

    spec = importlib.util.find_spec("klinic.failures")
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    return sorted(
        m.name.replace("_", "-") for m in pkgutil.iter_modules(places) if m.name[0] != "_"
    )


def _thresholds(slug: str, lang: str) -> str:
    from klinic.text import figure, say
    from klinic.thresholds import CHOSEN, thresholds

    lines = [f"\n## {say('explain.thresholds', lang)}\n", f"[thresholds.{slug}]"]
    for name, value in thresholds(slug).items():
        other = CHOSEN.get().get(slug, {}).get(name)
        lines.append(
            f"{name} = {figure(value if other is None else other)}"
            + ("" if other is None else f"  # {say('explain.instead', lang, value=value)}")
        )
    return "\n".join(lines) + "\n"


def _metric(name: str, lang: str) -> str:
    from klinic.text import say
    from klinic.trainers import tables
    from klinic.vitals import ROLES, fits

    role = ROLES[name]
    lines = [
        f"# {name}: {role.says('title', lang)}",
        "",
        say("metrics.healthy", lang, text=role.says("healthy", lang)),
        say("metrics.abnormal", lang, text=role.says("abnormal", lang)),
        say("metrics.unit", lang, text=role.unit),
    ]
    for table in tables().values():
        rules = [
            rule for rule in table.metric if any(fits(pattern, rule.name) for pattern in role.names)
        ]
        hint = table.log.get(name)
        if not rules and hint is None:
            continue
        lines += ["", f"## {say('metrics.in_trainer', lang, trainer=table.title)}"]
        for rule in rules:
            said = rule.zh if lang == "zh" else rule.en
            lines.append(f"- {rule.key}: {rule.definition}" + (f"; {said}" if said else ""))
        if hint is not None:
            lines.append(
                "- "
                + say(
                    "text.how_to_log",
                    lang,
                    how=" ".join(
                        part
                        for part in (hint.how, hint.how_zh if lang == "zh" else hint.how_en)
                        if part
                    ),
                )
            )
    return "\n".join(lines) + "\n"
