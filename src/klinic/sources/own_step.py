"""Which number of a tracker's rows is the step.

``_step`` counts calls of wandb.log or trackio.log, and a trainer that logs tables or timings in calls of their own runs
ahead of its own steps (transformers logs train/global_step beside). So the trainer's own step counts where rows carry one;
a row without stands at the step of the row before it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from klinic.sources.rows import STEP_KEYS

OWN = tuple(key for key in STEP_KEYS if key != "_step")
CARRYING_SHARE = (
    0.5  # of the rows with a known metric; timings in rows of their own may outnumber them
)
OF_THE_TRACKER = ("_step", "_runtime", "_timestamp", "_wandb/runtime")


def axes_of(
    rows: Sequence[dict[str, float]], defined: Iterable[str], knows: Callable[[str], bool]
) -> tuple[str, ...]:
    """Keys that hold the trainer's own step, in the order in which a row is asked for them.

    None where most rows with a known metric carry no such key: then only evaluations are logged over one of their own.
    defined: keys that the run itself named as another's step.
    """
    held = {key for row in rows for key in row}
    axes = tuple(
        key
        for key in dict.fromkeys([*OWN, *defined])
        if key in held and _counts({row[key] for row in rows if key in row})
    )
    known = {key for key in held if key not in axes and key not in OF_THE_TRACKER and knows(key)}
    metrics = [row for row in rows if not known.isdisjoint(row)] or rows
    carrying = sum(any(key in row for key in axes) for row in metrics)
    return axes if carrying >= CARRYING_SHARE * len(metrics) else ()


def _counts(values: Collection[float]) -> bool:
    """Whether they can be steps; one value alone says only that no step was finished, and would pile all rows up."""
    return len(values) > 1 and all(value % 1 == 0 for value in values)


def stepped(
    rows: Iterable[dict[str, float]], axes: Sequence[str]
) -> Iterator[tuple[int | None, dict[str, float]]]:
    """Yield (step, values) of every row; no step where neither it nor any row carries one, and rows are to be counted."""
    waiting: list[dict[str, float]] = []
    step: int | None = None
    for row in rows:
        own = next((row[key] for key in axes or ("_step",) if key in row), None)
        values = {
            key: value
            for key, value in row.items()
            if key not in OF_THE_TRACKER and key not in axes
        }
        if own is not None:
            step = int(own)
            yield from ((step, earlier) for earlier in waiting)
            waiting = []
        if step is None:
            waiting.append(values)
        else:
            yield step, values
    yield from ((None, earlier) for earlier in waiting)
