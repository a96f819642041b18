"""Which trainer wrote a log: by the keys only it writes, and by words in the log."""

from __future__ import annotations

import re
from collections.abc import Iterable

from klinic.errors import BadUsage, did_you_mean
from klinic.run import Trainer
from klinic.trainers import GENERIC, Table, tables

WORD_VOTES = 2  # a class name in the log weighs as much as two keys


def recognise(keys: Iterable[str], text: str, forced: str | None = None) -> tuple[Trainer, Table]:
    """The trainer and its table. Raises BadUsage for an unknown ``forced`` name."""
    known = tables()
    if forced is not None:
        if forced not in known:
            raise BadUsage(
                f"unknown trainer {forced!r}",
                "--trainer",
                did_you_mean(forced, known) or f"known: {', '.join(known)}",
            )
        table = known[forced]
        return Trainer(forced, table.title, "--trainer", _version(table, text)), table
    have = list(keys)
    best: tuple[int, str, str] = (0, GENERIC, "")
    for name, table in known.items():
        stripped = table.bare(have)
        hits = [key for key in table.recognise.keys if key in stripped]
        words = [word for word in table.recognise.text if word in text]
        votes = len(hits) + WORD_VOTES * len(words)
        # A fork writes what its base writes: the base's marks count for it once one of its own is there.
        if votes and table.base in known:
            of_base = known[table.base].recognise
            votes += sum(key in stripped for key in of_base.keys)
            votes += WORD_VOTES * sum(word in text for word in of_base.text)
        if votes > best[0]:
            best = (votes, name, ", ".join((hits + words)[:3]))
    votes, name, because = best
    table = known[name]
    return Trainer(name, table.title, because, _version(table, text)), table


def _version(table: Table, text: str) -> str:
    """The trainer's version as the log's words state it (``verl==0.8.0``), "" where they do not."""
    for pattern in table.recognise.version:
        if found := re.search(pattern, text):
            return found.group(1)
    return ""
