"""The audit: honest answers first, then every exploit beside them, then spellings, labels and what makes it fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median, pstdev
from typing import Any

from klinic.audit.answers import spellings
from klinic.audit.attempt import Attempt, Sight
from klinic.audit.caller import Caller, Outcome, OutOfTime
from klinic.audit.convention import Convention, choose
from klinic.audit.exploits import forms
from klinic.audit.formats import FORMATS, WORK, filled, learnt_formats, own_formats, tags_in
from klinic.audit.honest import Honest, honest, mean, wrong_answers
from klinic.audit.report import Earned, Labelled, Rejected, Report, Trouble
from klinic.audit.rows import Data, Row
from klinic.errors import BadUsage

ROWS = 16  # rows tried (our choice: an exploit that pays on one row in six is found nineteen times in twenty)
FEW = 3  # rows for an attempt whose text is the same for every row
# Share of what a right answer earns above a wrong one. Groups in which no sample is right are scaled by their own std
# (GRPO), so that a twentieth is learnt there as if it were all (our choice).
PAYS = 0.05
REPEATED = 4  # rows asked three times over
NOISE = 3.0  # standard errors of a reward that is not the same twice
ATTEMPTS = 170  # about as many as there are, to share the time out
FOR_EXPLOITS = 0.7  # share of all time
LABELS = 200  # labelled completions called
Progress = Callable[[str], None]


class Audit:
    """One function and its data. ``run`` gives the report."""

    def __init__(self, caller: Caller, data: Data, *, signature: str, threshold: float, rows: int, templates: Mapping[str, str]) -> None:  # fmt: skip
        self.caller, self.data, self.threshold = caller, data, threshold
        self.rows = spread(data.rows, rows)
        columns = list(dict.fromkeys(key for row in data.rows for key in row.columns))
        chosen = choose(caller.seen["parameters"], columns, signature, caller.target)
        self.convention = replace(chosen, chat=data.chat and chosen.name == "trl")
        self.templates = {
            **templates,
            **learnt_formats(data.labelled),
            **FORMATS,
            **own_formats(caller.seen["strings"]),
        }
        self.troubles: dict[tuple[str, str], Trouble] = {}
        self.seconds: list[tuple[float, str, str]] = []
        self.left: list[str] = []

    def ask(self, rows: Sequence[Row], texts: Sequence[Any], at: str = "honest") -> list[Outcome]:
        """Call for each row with its text, and note what went wrong."""
        asked = [self._asked(row, text) for row, text in zip(rows, texts, strict=True)]
        got = self.caller.call(self.convention.plan(), asked)
        for row, text, one in zip(rows, texts, got, strict=False):
            self.seconds.append((one.seconds, at, str(text)))
            if not one.fine:
                key = (one.trouble, one.told.partition(":")[0])
                first = self.troubles.get(key) or Trouble(one.trouble, one.told, at, str(text), row.number, 0)  # fmt: skip
                self.troubles[key] = replace(first, count=first.count + 1)
        return got

    def _asked(self, row: Row, text: Any) -> dict[str, Any]:
        return {"prompt": row.prompt, "text": row.text, "completion": text, "answer": row.given, "columns": dict(row.columns)}  # fmt: skip

    def run(self, progress: Progress = lambda form: None) -> Report:
        """Everything, as far as the time goes. Raises BadUsage where no honest answer gets a number."""
        begun = time.monotonic()
        progress("honest")
        self._settle()
        try:
            held, outcomes = honest(self.rows, self.templates, self.ask)
        except OutOfTime:
            raise BadUsage(
                "no time was left after the honest answers",
                self.caller.target,
                "give it more: --limit SECONDS, or fewer --rows",
            ) from None
        if not any(one.fine for one in outcomes):
            raise BadUsage(
                f"no honest answer gets a number: {outcomes[0].told or outcomes[0].trouble}",
                self.caller.target,
                f"called as {self.convention.call}; --signature says what each argument is, e.g. prompt,completion,answer",
            )
        if not held.gap > 0 and held.reads:
            # Where whatever states no answer is paid like a right one, a wrong answer in the format is what to be held against.
            held = replace(held, plain=held.wrong)
        self._share_out(outcomes)
        noise, parts, rejected, labelled, apart = 0.0, [], [], None, None
        earned: list[Earned] = []
        try:
            noise = self._noise(held)
            apart = self._together(held)
            for form, attempts in forms().items():
                progress(form)
                self.left = [f for f in forms() if f not in {e.form for e in earned}]
                earned += self._form(form, attempts, held)
            self.left = ["spellings"]
            progress("spellings")
            rejected = self._spellings(held)
            self.left = ["labelled"]
            labelled = self._labelled(held)
            self.left = []
        except OutOfTime:
            parts = self.left
        gap = held.gap
        if not gap > 0:
            tops = [e.mean for e in earned if e.mean == e.mean]
            gap = max(tops, default=0.0) - mean(held.plain)
        judged = [self._judged(one, gap, noise) for one in earned]
        return Report(
            function=self.caller.target,
            convention=self.convention,
            data=self.data,
            used=len(self.rows),
            honest=held,
            gap=gap,
            threshold=self.threshold,
            earned=tuple(judged),
            rejected=tuple(rejected),
            labelled=labelled,
            troubles=tuple(self.troubles.values()),
            noise=noise,
            apart=apart,
            seconds=median(s for s, _, _ in self.seconds),
            slowest=max(self.seconds, key=lambda one: one[0]),
            wall=time.monotonic() - begun,
            calls=self.caller.calls,
            left=tuple(parts),
        )

    def _settle(self) -> None:
        """Strings or messages: whichever does not raise, where the prompts do not tell."""
        if self.convention.name != "trl":
            return
        row = next((r for r in self.rows if r.answer is not None), self.rows[0])
        text = filled(FORMATS["sentence"], row.answer.stated if row.answer is not None else "53")
        (first,) = self.caller.call(self.convention.plan(), [self._asked(row, text)])
        if not first.fine:
            turned = replace(self.convention, chat=not self.convention.chat)
            (other,) = self.caller.call(turned.plan(), [self._asked(row, text)])
            if other.fine:
                self.convention = turned

    def _share_out(self, outcomes: Sequence[Outcome]) -> None:
        """Fewer rows for a slow function, so that every form is tried."""
        took = mean([one.seconds for one in outcomes])
        time_left = FOR_EXPLOITS * (self.caller.ends - time.monotonic())
        self.most = max(1, min(len(self.rows), int(time_left / max(took * ATTEMPTS, 1e-9))))

    def _noise(self, held: Honest) -> float:
        """Standard deviation of the reward of one text, asked three times."""
        some = [r for r in self.rows if r.answer is not None][:REPEATED] or self.rows[:REPEATED]
        texts = [filled(held.template, r.answer.stated if r.answer else "53") for r in some]
        told = [self.ask(some, texts) for _ in range(3)]
        spreads = [pstdev(one.score for one in same) for same in zip(*told, strict=False) if all(o.fine for o in same)]  # fmt: skip
        return max(spreads, default=0.0)

    def _together(self, held: Honest) -> float | None:
        """The largest difference between the reward alone and in a batch; None for a function without lists."""
        if not self.convention.batched or len(self.rows) < 2:
            return None
        wrongs = wrong_answers(self.rows)
        texts = [filled(held.template, w) for w in wrongs]
        asked = [self._asked(row, text) for row, text in zip(self.rows, texts, strict=True)]
        got = self.caller.together(self.convention.plan(), asked)
        if len(got) != len(self.rows):
            return float("nan")
        pairs = zip(got, held.wrong, strict=True)
        return max((abs(one.score - w) for one, w in pairs if one.fine and w == w), default=None)

    def _sight(self, i: int, wrongs: Sequence[str], held: Honest) -> Sight:
        row = self.rows[i]
        others = [r.answer.stated for r in self.data.rows if r is not row and r.answer is not None]
        strings = self.caller.seen["strings"]
        return Sight(row.text, row.answer, wrongs[i], held.format, held.template, others, tags_in(strings), strings)  # fmt: skip

    def _form(self, form: str, attempts: Callable[[Sight], Any], held: Honest) -> list[Earned]:
        wrongs = wrong_answers(self.rows)
        by_name: dict[str, list[tuple[int, Attempt]]] = {}
        for i in spread(range(len(self.rows)), self.most):
            for one in attempts(self._sight(i, wrongs, held)):
                by_name.setdefault(one.name, []).append((i, one))
        return [self._earned(form, name, tried, held) for name, tried in by_name.items()]

    def _earned(self, form: str, name: str, tried: list[tuple[int, Attempt]], held: Honest) -> Earned:  # fmt: skip
        lucky = [pair for pair in tried if _lucky(self.rows[pair[0]], pair[1])]
        counted = [pair for pair in tried if pair not in lucky]
        if counted and counted[0][1].few:
            counted = spread(counted, FEW)
        rows = [self.rows[i] for i, _ in counted]
        got = self.ask(rows, [one.text for _, one in counted], f"{form}/{name}") if rows else []
        excess: list[tuple[float, float, int, str]] = []
        for (i, one), outcome in zip(counted, got, strict=False):
            base = held.wrongs[one.against][i] if one.against else held.plain[i]
            if outcome.fine and base == base:
                excess.append((outcome.score, outcome.score - base, self.rows[i].number, one.text))
        best = max(excess, key=lambda one: one[1], default=(float("nan"), 0.0, 0, ""))
        return Earned(
            form,
            name,
            best[3],
            best[2],
            mean([s for s, _, _, _ in excess]),
            tuple(x for _, x, _, _ in excess),
            len(lucky),
            tried[0][1].knows,
        )

    def _judged(self, one: Earned, gap: float, noise: float) -> Earned:
        if not one.excess or not gap > 0:
            return one
        share = mean(one.excess) / gap
        least = self.threshold + NOISE * noise * (2 / len(one.excess)) ** 0.5 / gap
        paid = sum(x >= self.threshold * gap for x in one.excess) / len(one.excess)
        return replace(one, share=share, paid=paid, pays=share >= least and paid > 0)

    def _spellings(self, held: Honest) -> list[Rejected]:
        """Honest right answers, written otherwise, that earn less than half of what the plain spelling does."""
        told: dict[str, list[tuple[Row, str]]] = {}
        for row, right, wrong in zip(self.rows, held.right, held.wrong, strict=True):
            if row.answer is not None and right > wrong:
                for name, text in spellings(row.answer):
                    told.setdefault(name, []).append((row, text))
        by_number = {row.number: i for i, row in enumerate(self.rows)}
        found = []
        for name, tried in told.items():
            tried = spread(tried, self.most)
            texts = [filled(held.template, text) for _, text in tried]
            got = self.ask([row for row, _ in tried], texts, f"spellings/{name}")
            less = []
            for (row, text), one in zip(tried, got, strict=False):
                i = by_number[row.number]
                if not one.fine or one.score < (held.right[i] + held.wrong[i]) / 2:
                    less.append((row, text))
            if less:
                row, text = less[0]
                found.append(Rejected(name, text, row.answer.stated if row.answer else "", len(less), len(tried)))  # fmt: skip
        return found

    def _labelled(self, held: Honest) -> Labelled | None:
        some = spread(self.data.labelled, LABELS)
        if not some:
            return None
        got = self.ask(some, [row.completion for row in some], "labelled")
        pairs = [(row, one.score) for row, one in zip(some, got, strict=False) if one.fine]
        line = mean(held.plain) + held.gap / 2 if held.gap > 0 else 0.5
        paid = [row for row, score in pairs if not row.right and score >= line]
        unpaid = [row for row, score in pairs if row.right and score < line]
        return Labelled(
            sum(bool(row.right) for row, _ in pairs),
            sum(not row.right for row, _ in pairs),
            tuple((row.number, str(row.completion)) for row in paid),
            tuple((row.number, str(row.completion)) for row in unpaid),
        )


def spread(rows: Sequence[Any], most: int) -> list[Any]:
    """At most so many, evenly over all."""
    if len(rows) <= most:
        return list(rows)
    return [rows[i * len(rows) // most] for i in range(most)]


def _lucky(row: Row, attempt: Attempt) -> bool:
    return row.answer is not None and any(row.answer.same(g) for g in attempt.guesses)


__all__ = ["PAYS", "ROWS", "WORK", "Audit", "Convention"]
