"""``klinic watch RUN...``: follow runs that grow, and tell what goes wrong once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click

from klinic.cli import language
from klinic.cli._options import config_option, lang_option, map_option, trainer_option
from klinic.settings import settings

SEVERITIES = ["stop", "act", "caution"]


@click.command("watch")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--every",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    metavar="STEPS",
    help="steps from one diagnosis to the next",
)
@click.option(
    "--interval",
    default=5.0,
    show_default=True,
    type=click.FloatRange(0.1),
    metavar="SECONDS",
    help="least time between two readings of a run; long logs are read less often",
)
@click.option(
    "--alert-on",
    type=click.Choice(SEVERITIES),
    default="act",
    show_default=True,
    help="tell findings of this severity or worse",
)
@click.option(
    "--cool-down",
    default=100,
    show_default=True,
    type=click.IntRange(0),
    metavar="STEPS",
    help="steps after a failure's end before it is told again",
)
@click.option(
    "--webhook",
    "webhooks",
    multiple=True,
    metavar="URL",
    help="POST each alert as JSON (repeatable)",
)
@click.option(
    "--notify",
    multiple=True,
    metavar="ADDRESS",
    help="an address of the apprise library: Slack, Discord, e-mail, DingTalk, Feishu, WeCom and more (repeatable)",
)
@click.option(
    "--on-finding",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="run a shell command with the alert as JSON on its standard input (repeatable)",
)
@click.option(
    "--touch",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="make this file, for the trainer to see, on a severe finding",
)
@click.option(
    "--stop-pid",
    type=click.IntRange(1),
    default=None,
    metavar="PID",
    help="send SIGTERM to this process on a severe finding",
)
@click.option(
    "--stop-on",
    type=click.Choice(SEVERITIES),
    default="stop",
    show_default=True,
    help="the severity from which --touch and --stop-pid act",
)
@click.option(
    "--state",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="what is remembered between starts (default: ~/.local/state/klinic/watch.sqlite)",
)
@click.option("--once", is_flag=True, help="look once, deliver what is due, and end (for cron)")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="how alerts are printed; json: one object a line",
)
@map_option
@config_option
@trainer_option
@lang_option
def command(
    paths: tuple[Path, ...],
    every: int,
    interval: float,
    alert_on: str,
    cool_down: int,
    webhooks: tuple[str, ...],
    notify: tuple[str, ...],
    commands: tuple[str, ...],
    touch: Path | None,
    stop_pid: int | None,
    stop_on: str,
    state: Path | None,
    once: bool,
    form: str,
    mapping: tuple[str, ...],
    config: Path | None,
    trainer: str | None,
    lang: str | None,
) -> int:
    """Follow runs while they grow, diagnose them every 20 steps, and tell each finding once: fired, worse, over.

    RUN is a log file or a folder, of one run or many; one that is not there yet is waited for. A watch that was stopped or killed
    goes on where it was. Exit code with --once: 0 nothing is wrong, 1 something is; else 0 when it is interrupted.
    """
    from klinic.read import parse_mapping
    from klinic.watch.loop import Watch
    from klinic.watch.targets import targets

    spoken = (lang or "en") if form == "json" else language(lang)
    printer = _Printer(form, spoken)
    watch = Watch(
        paths,
        targets(webhooks, notify, commands, touch, stop_pid, stop_on),
        printer.alert,
        printer.trouble,
        state,
        every,
        interval,
        alert_on,
        cool_down,
        spoken,
        {"mapping": parse_mapping(mapping), "config": config, "trainer": trainer},
        {"skip": settings().skip},
    )
    try:
        if once:
            watch.once()
            printer.troubles_of(watch)
            return max(
                (w.diagnosis.status == "failing" for w in watch.runs.values() if w.diagnosis),
                default=0,
            )
        _follow(watch, printer)
    finally:
        watch.close()
    return 0


def _follow(watch: Any, printer: _Printer) -> None:
    from klinic.text import say_in

    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda n, frame: stopped.append(n))
    with printer.live():
        watch.run(lambda: bool(stopped), lambda runs: printer.show(watch))
    click.echo(say_in("watch", "view.stopped", printer.lang), err=True)


class _Printer:
    """Alerts go to standard output, the redrawn table and troubles to standard error."""

    def __init__(self, form: str, lang: str) -> None:
        self.form, self.lang = form, lang
        self.screen: Any = None
        self.told: dict[str, str] = {}

    def live(self) -> Any:
        """A table that is drawn anew on a terminal; nothing elsewhere."""
        from contextlib import nullcontext

        if not sys.stderr.isatty():
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        self.screen = Live(console=Console(stderr=True, highlight=False), auto_refresh=False)
        return self.screen

    def alert(self, alert: dict[str, Any]) -> None:
        import json

        text = json.dumps(alert) if self.form == "json" else alert["text"] + "\n"
        if self.screen is not None and sys.stdout.isatty():
            self.screen.console.print(text, markup=False)
        else:
            print(text, flush=True)

    def trouble(self, where: str, what: str) -> None:
        if self.told.get(where) != what:
            self.told[where] = what
            if self.screen is None:
                print(f"{where}: {what}", file=sys.stderr, flush=True)

    def troubles_of(self, watch: Any) -> list[str]:
        """What cannot be read now; elsewhere than on a terminal each is said once."""
        from klinic.said import said
        from klinic.text import say_in

        found = {
            str(p): say_in("watch", "view.missing", self.lang, path=p)
            for p in watch.followed.missing
        }
        for path, trouble in watch.troubles().items():
            what = said(trouble.what, self.lang)
            found[str(path)] = say_in("watch", "view.trouble", self.lang, path=path, what=what)
        for where, line in found.items():
            if self.screen is None and self.told.get(where) != line:
                self.told[where] = line
                print(line, file=sys.stderr, flush=True)
        return list(found.values())

    def show(self, watch: Any) -> None:
        """Draw the table."""
        lines = self.troubles_of(watch)
        if self.screen is None:
            return
        from rich.text import Text

        from klinic.render._watch import view

        size = self.screen.console.size
        drawn = view(watch.runs.values(), lines, self.lang, size.width, size.height)
        self.screen.update(Text(drawn), refresh=True)
