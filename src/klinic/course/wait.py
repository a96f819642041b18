"""A progress bar on a terminal, silence in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def waiting(title: str, total: int) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Yields what the lab calls after every step, None where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        job = bar.add_task(title, total=total)
        yield lambda row: bar.update(job, completed=row["done"])
