"""What a rescue says while it runs: a bar on a terminal, and the last lines of a command that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from klinic.text import say_in


def failed(lang: str, done: Any, treatment: Any = None, again: bool = False, **_: Any) -> str:
    """A failed command: which, how it ended, and what it said last. again: it failed when last asked."""
    key = ("timed_out" if done.exit is None else "failed") + ("_before" if again else "")
    head = say_in("rescue", f"rescue.live.{key}", lang, exit=done.exit)
    what = f"{treatment.text}: " if treatment is not None else ""
    return "\n".join([what + head, *(f"  {line}" for line in done.tail)])


@contextmanager
def live(lang: str) -> Iterator[Callable[..., None]]:
    """A spinner with the running arm and its seconds, on standard error."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(say_in("rescue", "rescue.live.diagnosing", lang), total=None)

        def tell(kind: str, **what: Any) -> None:
            if kind == "running":
                role = say_in("rescue", f"rescue.live.{what['role']}", lang)
                name = what["treatment"].text if what["treatment"] else None
                key = "rescue.live.running" if name else "rescue.live.running_control"
                said = say_in("rescue", key, lang, what=name, role=role, seed=what["seed"])
                bar.reset(task, description=said)
            elif kind == "failed":
                console.print(failed(lang, **what), markup=False)
            elif kind == "attempt":
                a = what["attempt"]
                outcome = say_in("rescue", f"rescue.outcome.{a.outcome}", lang)
                console.print(
                    say_in(
                        "rescue",
                        "rescue.live.attempt",
                        lang,
                        text=a.treatment.text,
                        outcome=outcome,
                    ),
                    markup=False,
                )
            elif kind == "judged":
                pass  # the bar says that the run goes on

        yield tell
