"""The command line: one verb per file, imported when it is asked for."""

from __future__ import annotations

import gc
import importlib
import locale
import os
import pkgutil
import sys
from typing import Any

import click

from klinic import __version__
from klinic.errors import KlinicError, did_you_mean
from klinic.settings import settings

BUG = 70  # exit code of a bug in klinic (sysexits EX_SOFTWARE)


class Verbs(click.Group):
    """Finds verbs by walking this folder; a mistyped one is answered with the nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb."""
        return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_"))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """One verb, imported now."""
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer a mistyped verb."""
        if args and args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            raise KlinicError(
                f"unknown verb {args[0]!r}",
                "klinic",
                did_you_mean(args[0], self.list_commands(ctx)) or "klinic --help lists them",
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every verb with its first sentence, whole."""
        verbs = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, (verb.help or "").partition("\n\n")[0])
                    for name, verb in verbs.items()
                    if verb
                ]
            )


@click.command(
    cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="klinic")
def klinic() -> None:
    """Say what is wrong with an RL post-training run, since which step, and what to change first."""
    if settings().thresholds:
        from klinic.thresholds import CHOSEN

        CHOSEN.set(settings().thresholds)


def language(asked: str | None) -> str:
    """The language asked for, else that of KLINIC_LANG, of klinic.toml, or of the locale: zh or en."""
    if asked:
        return asked
    if settings().lang and not os.environ.get("KLINIC_LANG"):
        return str(settings().lang)
    for name in ("KLINIC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


def _asked_language() -> str | None:
    """What --lang says, read before click does: a page of --help is printed before the options are known."""
    said = " ".join(sys.argv[1:]).replace("=", " ").split()
    return said[said.index("--lang") + 1] if "--lang" in said[:-1] else None


def main() -> None:
    """Run the command line; every expected error is one line (what, where, what to do) and exit code 2."""
    gc.disable()  # one short process: nothing it makes is worth collecting before it ends
    if {"-h", "--help"} & set(sys.argv) and language(_asked_language()) == "zh":
        from klinic.cli._help import ChineseHelp

        click.Context.formatter_class = ChineseHelp
    json_wanted = any(a == "json" or a == "--format=json" for a in sys.argv)
    try:
        code: Any = klinic.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except KlinicError as trouble:
        if json_wanted:
            import json

            click.echo(
                json.dumps(
                    {"error": {"what": trouble.what, "where": trouble.where, "hint": trouble.hint}},
                    ensure_ascii=False,
                )
            )
        click.echo(f"error: {trouble}", err=True)
        if trouble.hint:
            click.echo(f"hint: {trouble.hint}", err=True)
        sys.exit(2)
    except click.exceptions.NoSuchOption as trouble:
        click.echo(f"error: {trouble.format_message()}", err=True)
        sys.exit(2)
    except click.UsageError as trouble:
        click.echo(f"error: {trouble.format_message()}", err=True)
        if trouble.ctx is not None:
            click.echo(f"hint: {trouble.ctx.command_path} --help", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as trouble:
        if os.environ.get("KLINIC_TRACEBACK"):
            raise
        click.echo(f"error: a bug in klinic: {type(trouble).__name__}: {trouble}", err=True)
        click.echo("hint: rerun with KLINIC_TRACEBACK=1 and report what it prints", err=True)
        sys.exit(BUG)
