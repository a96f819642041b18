"""One rescue at a time in a folder."""

from __future__ import annotations

import os
from pathlib import Path

from klinic.errors import BadUsage


class alone:
    """One rescue at a time in a folder; the lock is the system's and dies with the process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.handle: int | None = None

    def __enter__(self) -> None:
        try:
            import fcntl
        except (
            ImportError
        ):  # no such lock on this system: two rescues at once are then the user's to avoid
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.handle = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.handle or 0)
            self.handle = None
            raise BadUsage(
                "another rescue is going on here",
                str(self.folder),
                "wait for it, or name another with -o",
            ) from None
        except OSError as trouble:
            raise BadUsage(
                f"cannot be written ({trouble.strerror})",
                str(self.folder),
                "name another folder with -o",
            ) from None

    def __exit__(self, *_: object) -> None:
        if self.handle is not None:
            os.close(self.handle)
