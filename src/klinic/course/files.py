"""Files are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from klinic.errors import UnreadableInput


def write_whole(place: Path, data: bytes) -> None:
    """Write a temporary file beside and rename. Raises UnreadableInput where the folder cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(name, place)
    except OSError as trouble:
        raise UnreadableInput(
            f"cannot be written ({trouble.strerror})",
            str(place),
            "name a file in a folder that may be written to",
        ) from None
