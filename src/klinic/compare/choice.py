"""Which of the curves that moved a change is judged by: the first mover, if the control shows it in these steps at all."""

from __future__ import annotations

from collections.abc import Sequence

from klinic.compare.bearing import Mover
from klinic.compare.effect import effect
from klinic.run import Run

SURE_Z = 3.0  # errors by which a curve must differ, between the arms or from its own level before
# With one run in either arm only the noise within runs is known. Between two resamples of one configuration (12 of
# each of four tiny-trainer runs) the largest z was 5.9, and 3.05 with two in either arm.
SURE_Z_ALONE = 6.0


def clearest(
    candidates: Sequence[Mover], old: Run, controls: Sequence[Run], first: int, last: int
) -> Mover | None:
    """The first candidate whose bad movement is plain in the control; None where no candidate's is.

    Only the control is asked, never the changed run: a curve chosen by what the change did would flatter it.
    """
    moved = [candidate for candidate in candidates if candidate.because == "moved"]
    if not moved:
        return next(iter(candidates), None)
    for candidate in moved:
        seen = effect(candidate.metric, old, controls, controls, first, last)
        if seen is None:
            continue
        bad = candidate.worse * seen.control_change
        if bad > 0 and bad >= SURE_Z * seen.error:
            return candidate
    return None
