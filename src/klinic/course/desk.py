"""What a command is handed: progress, language, and how the learner types the next one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from klinic.course.plan import Task, task
from klinic.course.progress import Progress
from klinic.course.scenes import Log, log, specs
from klinic.course.words import tell
from klinic.errors import BadUsage, did_you_mean
from klinic.render._layout import WIDTH, columns, wrap


@dataclass
class Desk:
    """One learner at work.

    prefix: what stands before a command, ``klinic course`` outside the shell. given: the options typed with it.
    """

    progress: Progress
    place: Path
    lang: str
    prefix: str = ""
    given: dict[str, str] = field(default_factory=dict)
    leave: bool = False
    failed: bool = field(default=False)  # the last answer was wrong

    @property
    def task(self) -> Task:
        """The current exercise."""
        return task(self.progress.at)

    def say(self, key: str, **values: object) -> str:
        """One of the course's sentences."""
        return tell(key, self.lang, **values)

    def call(self, command: str) -> str:
        """A command as the learner types it, with the options given so far."""
        if not self.prefix:
            return command
        options = [f"{name} {shlex.quote(value)}" for name, value in self.given.items()]
        return " ".join([self.prefix, *options, command])

    def type(self, *commands: str) -> str:
        """What to type next: one line, or one a command where they do not fit."""
        typed = [self.call(command) for command in commands]
        line = self.say("shell.next", what=self.say("shell.or").join(typed))
        if len(typed) == 1 or columns(line) <= WIDTH:
            return line
        return "\n".join([self.say("shell.next_list"), *(f"  {command}" for command in typed)])

    def slot(self, name: str) -> str:
        """A place for the learner to fill in: ``<step>``."""
        return f"<{self.say(f'slot.{name}')}>"

    def answer_form(self) -> str:
        """How an answer is typed here: ``answer <word> <word>``."""
        if self.task.kind == "quiz":
            return f"answer {self.slot('letters' if self.several else 'letter')}"
        return " ".join(["answer", *[self.slot("word")] * max(1, len(self.task.logs))])

    def answer_example(self) -> str:
        """The line that says how to fill in an answer, with one that is right nowhere."""
        quiz = "a f" if self.several else "d"
        pair = len(self.task.logs) == 2
        example = quiz if self.task.kind == "quiz" else "e b" if pair else "f"
        text = self.say("shell.example_pair" if pair else "shell.example", what=f"answer {example}")
        return wrap(text)

    @property
    def several(self) -> bool:
        """Whether the question has several right letters."""
        return self.task.kind == "quiz" and len(specs()["quiz"][self.task.number]) > 1

    def logs(self) -> list[Log]:
        """The logs of the current exercise, in order."""
        if self.task.kind == "lab":
            from klinic.course.hidden import lab_log

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
