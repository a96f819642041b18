"""What a command is handed: progress, language, and how the learner types the next one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from klinic.course.plan import Task, task
from klinic.course.progress import Progress
from klinic.course.scenes import Log, log
from klinic.course.words import tell
from klinic.errors import BadUsage, did_you_mean


@dataclass
class Desk:
    """One learner at work. prefix: what stands before a command, ``klinic course `` outside the shell."""

    progress: Progress
    place: Path
    lang: str
    prefix: str = ""
    leave: bool = False
    failed: bool = field(default=False)  # the last answer was wrong

    @property
    def task(self) -> Task:
        """The current exercise."""
        return task(self.progress.at)

    def say(self, key: str, **values: object) -> str:
        """One of the course's sentences."""
        return tell(key, self.lang, **values)

    def type(self, *commands: str) -> str:
        """The line that tells what to type next."""
        typed = [f"{self.prefix}{command}" for command in commands]
        return self.say("shell.next", what=self.say("shell.or").join(typed))

    def logs(self) -> list[Log]:
        """The logs of the current exercise, in order."""
        if self.task.kind == "lab":
            from klinic.course.labwork import lab_log

            found = lab_log(self)
            return [found] if found is not None else []
        return [log(name, self.progress.turn) for name in self.task.logs]

    def log(self, name: str | None) -> Log:
        """A log of this exercise by name, the only one where none is named. Raises BadUsage for another name."""
        found = self.logs()
        if not found:
            raise BadUsage(self.say("log.none"), self.task.typed, self.say("error.task_hint"))
        if name is None:
            return found[0]
        wanted = name.lower().removesuffix(".log")
        for one in found:
            if one.name == wanted:
                return one
        known = [one.name for one in found]
        raise BadUsage(
            self.say("error.log", word=name),
            self.task.typed,
            did_you_mean(wanted, known) or self.say("error.logs", logs=" ".join(known)),
        )

    def about(self, part: str) -> str:
        """The key of a text on the current exercise; scenes are told by what they are, pairs by their number."""
        one = self.task
        if one.kind == "quiz":
            return f"quiz.{one.number}.{part}"
        if one.kind == "scene":
            return f"task.scene.{part}" if part == "ask" else f"case.{self.logs()[0].answer}.{part}"
        return f"task.{one.id}.{part}"

    @property
    def answered(self) -> bool:
        """Whether the current exercise was answered at least once: the tool speaks only then."""
        return bool(self.progress.tries.get(self.progress.key()))

    @property
    def done(self) -> bool:
        """Whether the current exercise is done."""
        return self.progress.done.get(self.progress.key(), False)
