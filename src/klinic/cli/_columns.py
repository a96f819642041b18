"""``--map COLUMN=KEY`` of verbs that read samples."""

from __future__ import annotations

from collections.abc import Iterable

from klinic.errors import BadUsage, did_you_mean


def columns_given(pairs: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """The user's own names by column. Raises BadUsage for a pair without "=" or an unknown column."""
    found = {}
    columns = list(known)
    for pair in pairs:
        column, equals, key = pair.partition("=")
        if not equals or not key:
            raise BadUsage(f"not COLUMN=KEY: {pair!r}", "--map", "e.g. --map prompt=question")
        if column not in columns:
            raise BadUsage(
                f"unknown column {column!r}",
                "--map",
                did_you_mean(column, columns) or f"known: {', '.join(columns)}",
            )
        found[column] = key
    return found
