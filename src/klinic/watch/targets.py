"""Where alerts go: a JSON webhook, anything apprise knows, a command, a file that is touched, a process that is stopped.

A target either takes an alert or raises Untaken; the caller keeps count and tries again (:mod:`klinic.watch.state`).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from klinic import __version__
from klinic.errors import BadUsage, MissingExtra
from klinic.failures import SEVERITIES

PATIENCE = 10.0  # seconds a webhook may take (our choice, as is the next)
COMMAND_LIMIT = 600.0  # seconds a command may take


class Untaken(Exception):
    """The target did not take the alert; the message says why."""


class Target(Protocol):
    """What alerts are delivered to. name: by which its deliveries are counted, also after a restart."""

    @property
    def name(self) -> str:
        """Its kind and address."""

    def take(self, alert: dict[str, Any]) -> None:
        """Deliver, or raise Untaken."""


@dataclass(frozen=True)
class Webhook:
    """POSTs the alert as JSON. Header Idempotency-Key: the alert's id, the same whenever it is sent again."""

    url: str

    def __post_init__(self) -> None:
        if not re.match(r"https?://[^/\s]+", self.url):
            raise BadUsage("no http or https address", self.url, "--webhook https://host/path")

    @property
    def name(self) -> str:
        """Its kind and address."""
        return f"webhook {self.url}"

    def take(self, alert: dict[str, Any]) -> None:
        """Any 2xx answer counts as taken."""
        request = urllib.request.Request(
            self.url,
            json.dumps(alert).encode(),
            {
                "Content-Type": "application/json",
                "User-Agent": f"klinic/{__version__}",
                "Idempotency-Key": alert["id"],
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE):
                return
        except (OSError, ValueError, urllib.error.URLError) as trouble:
            raise Untaken(str(trouble)) from None


class Apprise:
    """Slack, Discord, e-mail, DingTalk, Feishu, WeCom and a hundred more, by an address of the apprise library."""

    def __init__(self, url: str) -> None:
        try:
            import apprise
        except ImportError as error:
            raise MissingExtra(
                "--notify needs apprise", hint="pip install 'klinic[watch]'"
            ) from error
        self.kinds = apprise.NotifyType
        self.server = apprise.Apprise()
        if not self.server.add(url):
            raise BadUsage(
                "no address that apprise understands",
                url.partition("://")[0] + "://",
                "see github.com/caronc/apprise for the form of each service's address",
            )
        shown: Any = self.server[0]
        self.name = f"notify {shown.url(privacy=True)}"

    def take(self, alert: dict[str, Any]) -> None:
        """The title is the alert's first line."""
        title, _, body = alert["text"].partition("\n")
        kind = {"stop": "FAILURE", "resolved": "SUCCESS"}.get(
            "resolved" if alert["state"] == "resolved" else alert["severity"], "WARNING"
        )
        if not self.server.notify(
            body=body or title, title=title, notify_type=getattr(self.kinds, kind)
        ):
            raise Untaken("the service did not take it")


@dataclass(frozen=True)
class Command:
    """Runs a shell command with the alert on standard input and in KLINIC_ALERT, KLINIC_RUN, KLINIC_FAILURE, KLINIC_STATE."""

    line: str

    @property
    def name(self) -> str:
        """Its kind and address."""
        return f"command {self.line}"

    def take(self, alert: dict[str, Any]) -> None:
        """Exit code 0 counts as taken."""
        said = json.dumps(alert)
        names = {
            "KLINIC_ALERT": said,
            "KLINIC_RUN": alert["run"],
            "KLINIC_FAILURE": alert["failure"] or "",
            "KLINIC_STATE": alert["state"],
            "KLINIC_SEVERITY": alert["severity"],
        }
        try:
            done = subprocess.run(
                self.line,
                shell=True,
                input=said.encode(),
                env={**os.environ, **names},
                timeout=COMMAND_LIMIT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except (OSError, subprocess.TimeoutExpired) as trouble:
            raise Untaken(str(trouble)) from None
        if done.returncode:
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise Untaken(f"exit {done.returncode} {' '.join(last)}".strip())


def _severe(alert: dict[str, Any], least: str) -> bool:
    return alert["state"] != "resolved" and SEVERITIES.index(alert["severity"]) <= SEVERITIES.index(
        least
    )


@dataclass(frozen=True)
class Touch:
    """Makes a file, which the training loop looks for, on an alert of this severity or worse."""

    place: Path
    least: str = "stop"

    @property
    def name(self) -> str:
        """Its kind and address."""
        return f"touch {self.place.absolute()}"

    def take(self, alert: dict[str, Any]) -> None:
        """The file holds the alert's text."""
        if not _severe(alert, self.least):
            return
        from klinic.errors import UnreadableInput
        from klinic.files import write_whole

        try:
            write_whole(self.place, alert["text"].encode() + b"\n")
        except UnreadableInput as trouble:
            raise Untaken(str(trouble)) from None


class StopProcess:
    """Sends SIGTERM to a process on an alert of this severity or worse; another process that got its number later is left alone."""

    def __init__(self, pid: int, least: str = "stop") -> None:
        self.pid, self.least = pid, least
        self.born = _born(pid)
        self.name = (
            f"stop-pid {pid}, begun {self.born}"  # an alert for an earlier one is not for it
        )
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            raise BadUsage(
                "no such process", f"--stop-pid {pid}", "ps shows the trainer's"
            ) from None
        except OSError as trouble:
            raise BadUsage(
                f"it may not be stopped ({trouble.strerror})",
                f"--stop-pid {pid}",
                "watch as the user who runs the trainer",
            ) from None

    def take(self, alert: dict[str, Any]) -> None:
        """A process that has ended needs no stopping."""
        if not _severe(alert, self.least) or _born(self.pid) != self.born:
            return
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except OSError as trouble:
            raise Untaken(str(trouble)) from None


def _born(pid: int) -> str | None:
    """When a process began, in the system's own ticks; None where it is gone, or the system does not say."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def targets(
    webhooks: Sequence[str] = (),
    notify: Sequence[str] = (),
    commands: Sequence[str] = (),
    touch: Path | None = None,
    stop_pid: int | None = None,
    stop_on: str = "stop",
) -> list[Target]:
    """All targets that were asked for. Raises BadUsage for one that cannot work, MissingExtra without apprise."""
    found: list[Target] = [Webhook(url) for url in webhooks]
    found += [Apprise(url) for url in notify]
    found += [Command(line) for line in commands]
    if touch is not None:
        found.append(Touch(touch, stop_on))
    if stop_pid is not None:
        found.append(StopProcess(stop_pid, stop_on))
    return found
