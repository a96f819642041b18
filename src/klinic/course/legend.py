"""What each column of a log is, in one line."""

from __future__ import annotations

from collections.abc import Sequence

from klinic.course.desk import Desk
from klinic.course.look import HIDDEN, short
from klinic.course.scenes import FOLLOWS, KEYS
from klinic.course.words import has
from klinic.render._layout import columns, wrap


def legend(desk: Desk, words: Sequence[str]) -> str:
    """Every column of the logs at hand; those of the drawn logs where the exercise has none."""
    logs = desk.logs()
    keys = dict.fromkeys(short(key) for log in logs for key in log.keys if key not in HIDDEN)
    names = [name for name in keys or (*KEYS, FOLLOWS) if has(f"legend.{name}", desk.lang)]
    width = max(map(columns, names)) + 2
    lines = [
        wrap(
            f"{name.ljust(width)}{desk.say(f'legend.{name}')}",
            "  ",
            " " * (width + 2),
        )
        for name in names
    ]
    return "\n".join([desk.say("legend_head"), *lines])
