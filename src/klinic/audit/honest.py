"""What honest answers earn, right and wrong, and in which format: the scale on which every exploit is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from klinic.audit.answers import wrong_for
from klinic.audit.caller import Outcome
from klinic.audit.formats import filled
from klinic.audit.rows import Row

PROBED = 3  # rows on which every format is tried (our choice)
PLAIN = (
    "sentence",
    "bare",
)  # an answer without the format: what a policy that knows nothing of it earns
Ask = Callable[[Sequence[Row], Sequence[str]], list[Outcome]]


@dataclass(frozen=True, slots=True)
class Honest:
    """Rewards by row. format: the one in which a right answer earns most. formats: name -> mean of right and of wrong.

    right, wrong: in that format. plain: of the worst-paid wrong answer without a format. wrongs: by format, likewise by row.
    """

    format: str
    template: str
    formats: Mapping[str, tuple[float, float]]
    right: Sequence[float]
    wrong: Sequence[float]
    plain: Sequence[float]
    wrongs: Mapping[str, Sequence[float]]

    @property
    def gap(self) -> float:
        """What a right answer earns more than a wrong one without a format; NaN where no row has an answer."""
        known = [(r, p) for r, p in zip(self.right, self.plain, strict=True) if r == r and p == p]
        return fmean(r for r, _ in known) - fmean(p for _, p in known) if known else float("nan")

    @property
    def reads(self) -> list[str]:
        """Formats in which a right answer earns at least half of the best more than a wrong one."""
        best = max((r - w for r, w in self.formats.values()), default=0.0)
        return [n for n, (r, w) in self.formats.items() if best > 0 and r - w >= best / 2]


def wrong_answers(rows: Sequence[Row]) -> list[str]:
    """A wrong answer for each row, another row's where that is possible."""
    pool = list(dict.fromkeys(row.answer.stated for row in rows if row.answer is not None))
    turned = [pool[i:] + pool[:i] for i in range(1, len(pool) + 1)] or [[]]
    return [
        wrong_for(row.answer, turned[i % len(turned)]) if row.answer is not None else "53"
        for i, row in enumerate(rows)
    ]


def honest(rows: Sequence[Row], templates: Mapping[str, str], ask: Ask) -> tuple[Honest, list[Outcome]]:  # fmt: skip
    """Try every format on a few rows and the best on all. Returns what was earned and, apart, every outcome."""
    wrongs = wrong_answers(rows)
    answered = [i for i, row in enumerate(rows) if row.answer is not None] or [0]
    few = answered[:PROBED]
    outcomes: list[Outcome] = []

    def earned(at: Sequence[int], template: str, right: bool) -> list[float]:
        """NaN where there is no right answer or no number came."""
        known = [i for i in at if not right or rows[i].answer is not None]
        texts = [filled(template, (held.stated if right and (held := rows[i].answer) else wrongs[i])) for i in known]  # fmt: skip
        got = ask([rows[i] for i in known], texts) if known else []
        outcomes.extend(got)
        by_row = dict(zip(known, (one.score for one in got), strict=False))
        return [by_row.get(i, float("nan")) for i in at]

    formats = {
        name: (mean(earned(few, t, True)), mean(earned(few, t, False)))
        for name, t in templates.items()
    }

    def worth(name: str) -> tuple[float, float]:
        right, wrong = formats[name]
        if right != right:
            return (-float("inf") if wrong != wrong else wrong, 0.0)
        return (right, right - wrong if wrong == wrong else 0.0)

    best = max(formats, key=worth)
    every = range(len(rows))
    by_format = {n: earned(every, templates[n], False) for n in dict.fromkeys((*PLAIN, best))}
    plain = [min(pair, key=lambda v: (v != v, v)) for pair in zip(*(by_format[n] for n in PLAIN), strict=True)]  # fmt: skip
    right = earned(every, templates[best], True)
    return Honest(best, templates[best], formats, right, by_format[best], plain, by_format), outcomes  # fmt: skip


def mean(values: Sequence[float]) -> float:
    """Of those that are numbers; NaN without any."""
    known = [v for v in values if v == v]
    return fmean(known) if known else float("nan")
