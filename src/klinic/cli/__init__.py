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
from klinic.said import complaint, said
from klinic.settings import settings
from klinic.text import LANGUAGES

BUG = 70  # exit code of a bug in klinic (sysexits EX_SOFTWARE)
# A verb group without a word after it: click's answer is the page of --help (no such error before click 8.2).
NO_WORDS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Verbs(click.Group):
    """Finds verbs by walking this folder; a mistyped one is answered with the nearest."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every verb."""
        return sorted(
            m.name.replace("_", "-")
            for m in pkgutil.iter_modules(__path__)
            if not m.name.startswith("_")
        )

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """One verb, imported now."""
        if name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(
            f"{__name__}.{name.replace('-', '_')}"
        ).command
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
    return _surroundings()


def _surroundings() -> str:
    for name in ("KLINIC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return "zh" if os.environ[name].lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


def _asked_language() -> str | None:
    """What --lang says, read before click does: a page of --help is printed before the options are known."""
    words = " ".join(sys.argv[1:]).replace("=", " ").split()
    asked = words[words.index("--lang") + 1] if "--lang" in words[:-1] else None
    return asked if asked in LANGUAGES else None


def _spoken() -> str:
    """The language of help and errors, also where klinic.toml is what cannot be read."""
    try:
        return language(_asked_language())
    except KlinicError:
        return _surroundings()


def _complain(what: str, where: str = "", hint: str = "") -> None:
    """Print an error; where JSON was asked for, as JSON too, in English unless --lang says otherwise."""
    if any(a in ("json", "--format=json") for a in sys.argv):
        import json

        lang = _asked_language() or "en"
        error = {"what": said(what, lang), "where": where, "hint": said(hint, lang)}
        click.echo(json.dumps({"error": error}, ensure_ascii=False))
    click.echo(complaint(what, where, hint, _spoken()), err=True)


def _chinese_help() -> None:
    if _spoken() == "zh":
        from klinic.cli._help import ChineseHelp

        click.Context.formatter_class = ChineseHelp


def main() -> None:
    """Run the command line; every expected error is one line (what, where, what to do) and exit code 2."""
    gc.disable()  # one short process: nothing it makes is worth collecting before it ends
    if {"-h", "--help"} & set(sys.argv):
        _chinese_help()
    try:
        code: Any = klinic.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except KlinicError as trouble:
        _complain(trouble.what, trouble.where, trouble.hint)
        sys.exit(2)
    except click.UsageError as trouble:
        if trouble.ctx is not None and isinstance(trouble, NO_WORDS):
            _chinese_help()
            click.echo(trouble.ctx.get_help(), err=True)
            sys.exit(2)
        hint = f"{trouble.ctx.command_path} --help" if trouble.ctx is not None else ""
        _complain(trouble.format_message(), hint=hint)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo(said("stopped", _spoken()), err=True)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as trouble:
        if os.environ.get("KLINIC_TRACEBACK"):
            raise
        _complain(
            f"a bug in klinic: {type(trouble).__name__}: {trouble}",
            hint="rerun with KLINIC_TRACEBACK=1 and report what it prints",
        )
        sys.exit(BUG)
