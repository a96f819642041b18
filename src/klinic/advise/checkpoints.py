"""The newest complete checkpoint before the failure began."""

from __future__ import annotations

from klinic.run import Checkpoint, Run


def roll_back_to(run: Run, before: int | None) -> Checkpoint | None:
    """The newest complete checkpoint at or before step ``before``; an incomplete one only where no other is left."""
    if before is None:
        return None
    earlier = [checkpoint for checkpoint in run.checkpoints if checkpoint.step <= before]
    whole = [checkpoint for checkpoint in earlier if not checkpoint.missing]
    if whole:
        return whole[-1]
    return earlier[-1] if earlier else None
