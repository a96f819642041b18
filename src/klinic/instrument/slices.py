"""Parts of a batch: a task, a length bucket. Names under which klinic reads what was measured on one part alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from klinic.errors import BadUsage
from klinic.instrument.arrays import Array
from klinic.instrument.responses import lengths

# What klinic reads under a short name; {} is the part. All else stays under by/PART/NAME.
BY_TASK = {
    "acc/seq_mean": "acc/{}",
    "reward/seq_mean/raw": "reward_task/{}",
    "kl_ref/k3/token_mean/response_only": "kl_task/{}",
}
BY_LENGTH = {
    "reward/seq_mean/raw": "reward_len/{}",
    "kl_ref/k3/token_mean/response_only": "kl_len/{}",
}
NOT_A_TASK = {"mean", "std", "min", "max", "seq_mean"}  # acc/std is a spread, not a task called std


def sliced(which: str, values: Mapping[str, float]) -> dict[str, float]:
    """The values of one part under names of their own. which: ``task=gsm8k``, ``len=0-255``, or any ``WORD=NAME``.

    Raises BadUsage where it has another form.
    """
    by, _, part = which.partition("=")
    if not by or not part or "/" in which:
        raise BadUsage(
            f"cannot understand the slice {which!r}",
            "Recorder.log",
            "write task=gsm8k or len=0-255, without a slash",
        )
    short = {"task": BY_TASK, "len": BY_LENGTH}.get(by, {})
    if by == "task" and part in NOT_A_TASK:
        short = {}
    return {
        short.get(name, f"by/{which}/{{}}").format(part if name in short else name): value
        for name, value in values.items()
    }


def length_buckets(mask_BL: Array, edges: Sequence[int]) -> dict[str, Array]:
    """Which responses (B,) are how long: ``{"len=0-255": ..., "len=256-": ...}`` for the edge 256. edges: tokens, ascending.

    A bucket holds what is at least its first number long. Buckets without a response are left out.
    """
    if list(edges) != sorted(set(edges)) or not edges or edges[0] <= 0:
        raise BadUsage(
            f"the edges {list(edges)} do not rise from above 0",
            "length_buckets",
            "e.g. [256, 1024]",
        )
    length = lengths(mask_BL)
    found = {}
    for low, high in zip([0, *edges], [*edges, None], strict=True):
        name = f"len={low}-" if high is None else f"len={low}-{high - 1}"
        inside = length >= low if high is None else (length >= low) & (length < high)
        if bool(inside.any()):
            found[name] = inside
    return found
