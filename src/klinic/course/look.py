"""What a terminal shows of a log: a table of rows, sparklines, samples; nothing here judges."""

from __future__ import annotations

from collections.abc import Sequence

from klinic.course.scenes import Log
from klinic.render._layout import WIDTH, columns, pad, wrap
from klinic.render.sparkline import least_of, sparkline
from klinic.text import figure

SPARK = 36  # columns of a sparkline
SHORT = {
    "clip_frac": "clip",
    "ratio_mean": "ratio",
    "grad_norm": "gnorm",
    "clip_frac_trainer": "clip_tr",
    "ratio_trainer": "ratio_tr",
    "frac_zero_std": "zero_std",
}
TABLE = [
    "reward",
    "acc",
    "entropy",
    "kl",
    "adv_std",
    "clip",
    "clip_frac",
    "ratio",
    "ratio_mean",
    "len",
    "trunc",
    "gnorm",
    "grad_norm",
    "valid",
    "zero_std",
    "frac_zero_std",
    "ratio_outside",
    "ratio_geo",
    "uniq",
    "mismatch_abs",
    "eval_acc",
]  # in this order, as many as fit
HIDDEN = (
    "frac_all_wrong",
    "eos_rate",
)  # by these the lab's table is recognised; they tell nothing more
ROWS = 21  # rows of a table that still fit a terminal


def short(key: str) -> str:
    """A key as the tables head it."""
    return SHORT.get(key, key)


def spark(values: Sequence[float], key: str, width: int = SPARK) -> str:
    """A line of blocks, flat where the curve hardly moves."""
    return sparkline(values, width, least_of(key, values))


def drawing(one: Log) -> str:
    """Every curve of the log: first value, sparkline, last value."""
    rows = []
    for key in one.keys:
        if key in HIDDEN:
            continue
        values = one.column(key)
        if values:
            rows.append(
                (
                    short(key),
                    figure(_round(values[0])),
                    spark(values, key),
                    figure(_round(values[-1])),
                )
            )
    names = max(columns(row[0]) for row in rows)
    firsts = max(columns(row[1]) for row in rows)
    return "\n".join(
        f"  {pad(name, names)}  {first.rjust(firsts)}  {pad(line, SPARK)}  {last}"
        for name, first, line, last in rows
    )


def table(
    one: Log, first: int | None = None, last: int | None = None, wanted: Sequence[str] = ()
) -> str:
    """Rows of the log; without bounds about twenty, evenly spread, the last one among them.

    wanted: the log's own names of the columns; without, as many as a terminal holds.
    """
    rows = [
        row
        for row in one.rows
        if (first is None or row["step"] >= first) and (last is None or row["step"] <= last)
    ]
    if len(rows) > ROWS and first is None and last is None:
        every = -(-len(rows) // (ROWS - 1))
        rows = [*rows[::every], *([] if (len(rows) - 1) % every == 0 else rows[-1:])]
    keys = [key for key in wanted or TABLE if key in one.keys]
    cells = [[short("step"), *map(short, keys)]]
    for row in rows:
        cells.append(
            [str(int(row["step"]))]
            + [figure(_round(row[key])) if key in row else "" for key in keys]
        )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    gap = "  " if sum(widths) + 2 * len(widths) <= WIDTH else " "
    while sum(widths) + len(gap) * (len(widths) - 1) > WIDTH:
        widths.pop()
    return "\n".join(
        gap.join(cell.rjust(w) for cell, w in zip(line, widths, strict=False)) for line in cells
    )


def samples(one: Log) -> str:
    """What the policy answered, near the end."""
    return "\n".join(wrap(f"{i}  {text}", "  ", "     ") for i, text in enumerate(one.samples, 1))


def _round(value: float) -> float:
    """Three figures, and no more than four decimals, as a log shows them."""
    if abs(value) >= 100:
        return float(round(value))
    short = float(f"{value:.3g}")
    return round(short, 4) if abs(value) >= 1e-4 else short
