"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from klinic.errors import UnreadableInput


def write_whole(place: Path, data: bytes, parents: bool = False) -> None:
    """Write a temporary file beside and rename. parents: make the folders above, too.

    Raises UnreadableInput where the folder cannot be written.
    """
    import tempfile

    try:
        if parents:
            place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.resolve().parent, prefix=f".{place.name}.")
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be written ({trouble.strerror})",
            str(place),
            "name a folder that exists and may be written to",
        ) from None
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(name, 0o666 & ~mask)  # what an ordinary new file would have; mkstemp's is private
    os.replace(name, place)
