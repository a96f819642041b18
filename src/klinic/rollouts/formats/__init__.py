"""The layouts that dumps of rollouts come in, one a file; the folder is walked."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from klinic.errors import UnreadableInput
from klinic.rollouts.dump import Batch, Dump

__all__ = ["Batch", "Dump", "layouts", "read"]


@cache
def layouts() -> dict[str, Any]:
    """Name -> module, in the order they are asked whether a file is theirs."""
    found = {
        info.name: importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
        if not info.name.startswith("_")
    }
    return dict(sorted(found.items(), key=lambda item: (item[1].ORDER, item[0])))


def read(dump: Dump, since: int = 0, names: Mapping[str, str] | None = None) -> Iterator[Batch]:
    """The rollouts of a dump, some thousands at a time.

    since: the ``until`` of the last batch read before; nothing new gives no batch. names: column -> the user's own name.
    Raises UnreadableInput for what cannot be read at all, MissingExtra where its library is not installed.
    """
    try:
        yield from layouts()[dump.layout].read(dump, since, names or {})
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be read ({trouble.strerror})", str(dump.path), "name a file you may read"
        ) from None
