"""The PNG of a log: before an answer it shows curves only, afterwards the onset, too."""

from __future__ import annotations

from pathlib import Path

from klinic.course.desk import Desk
from klinic.course.scenes import Log
from klinic.files import write_whole


def picture(desk: Desk, log: Log, out: Path | None) -> Path:
    """Write the picture beside the progress file, or to ``out``. Returns where. Raises UnreadableInput if it cannot."""
    from klinic.course.judge import diagnosed
    from klinic.diagnosis import Diagnosis
    from klinic.render.png import render

    answer = diagnosed(desk, log)
    if not desk.answered:
        answer = Diagnosis(answer.run, "unjudged", ())
    place = out or desk.place.parent / "course" / f"{log.name}-{desk.progress.turn}.png"
    write_whole(place, render(answer, desk.lang), parents=True)
    return place
