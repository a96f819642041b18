"""The rounds of a rescue: every change at its first value, then what leaned the right way for longer, then further values.

All go back to the same checkpoint, each change alone. A round begins where the one before it rescued nothing.
"""

from __future__ import annotations

from dataclasses import replace

from klinic.compare.settings import home
from klinic.compare.smoke import smoke
from klinic.rescue.arms import Arms, arrival
from klinic.rescue.conclude import concluded, figures, lean, shows_until
from klinic.rescue.further import further
from klinic.rescue.outcome import Attempt, Wish
from klinic.rescue.plan import Plan, Treatment
from klinic.run import Run
from klinic.trainers import tables

RESAMPLES = {"lab": 2}  # where a run costs seconds; elsewhere 1
LEANS = 1.0  # standard errors on the good side: too few to call it better, enough to look longer (our choice)
OPEN = (
    "better",
    "other",
    "inconclusive",
)  # a change that is not shown to do harm may be turned further


def attempts_of(arms: Arms, wish: Wish) -> list[Attempt]:
    """Try until one change rescues, or none is left."""
    attempts = _first_values(arms, wish)
    for round_ in (_longer, _further):
        if any(a.outcome == "rescued" for a in attempts):
            break
        attempts = round_(arms, attempts, wish)
    return attempts


def _first_values(arms: Arms, wish: Wish) -> list[Attempt]:
    attempts: list[Attempt] = []
    for treatment in arms.plan.treatments:
        if treatment.how == "inspect":
            arms.ledger.once("skipped", treatment=treatment.name, why=treatment.action.why)
            attempts.append(Attempt(treatment, "inspect"))
            continue
        if treatment.how == "person":
            arms.ledger.once("needs-person", treatment=treatment.name, why=treatment.action.why)
            attempts.append(Attempt(treatment, "person"))
            if not any(a.treatment.how in ("set", "fix") for a in attempts):
                break  # the first thing to do is no flag: turning others would only hide it
            continue
        attempts.append(_over(arms, _try(arms, treatment, wish)))
        if attempts[-1].outcome == "rescued":
            break
    return attempts


def _longer(arms: Arms, attempts: list[Attempt], wish: Wish) -> list[Attempt]:
    """What so few steps could not judge goes on all the same: every repair, and the knobs that leaned the right way.

    A repair is no guess: a hole in the reward may cost no accuracy within the steps compared, and a flat curve turns
    late. The longer run is then diagnosed as any other, and the old run over the same steps beside it.
    """
    found = list(attempts)
    leaning = [a for a in attempts if a.outcome == "inconclusive" and a.verdict is not None]
    leaning = [a for a in leaning if a.treatment.how == "fix" or (wish.further and lean(a) > LEANS)]
    # The repair before the knobs, the knob that helped most before the others.
    for attempt in sorted(leaning, key=lambda a: (a.treatment.how != "fix", -lean(a))):
        found[attempts.index(attempt)] = went = _over(arms, _on_all_the_same(arms, attempt, wish))
        if went.outcome == "rescued":
            break
    return found


def _further(arms: Arms, attempts: list[Attempt], wish: Wish) -> list[Attempt]:
    """Turn the same numbers further: the smaller step first, and what helped most before the others."""
    found, table = list(attempts), tables()[arms.plan.diagnosis.run.trainer.name]
    open_ = sorted(
        (a for a in attempts if a.outcome in OPEN and lean(a) > -LEANS), key=lambda a: -lean(a)
    )
    for times in range(1, wish.further + 1):
        for attempt in list(open_):
            treatment = further(attempt.treatment, times, table)
            if treatment is None:
                continue
            new = _over(arms, _try(arms, treatment, wish))
            if new.outcome == "inconclusive" and lean(new) > LEANS:
                new = _over(arms, _on_all_the_same(arms, new, wish))
            found.append(new)
            if new.outcome == "rescued":
                return found
            if new.outcome not in OPEN:
                open_.remove(attempt)
    return found


def _over(arms: Arms, attempt: Attempt) -> Attempt:
    arms.ledger.once("attempt-over", treatment=attempt.treatment.name, outcome=attempt.outcome)
    arms.tell("attempt", attempt=attempt)
    return attempt


def _try(arms: Arms, treatment: Treatment, wish: Wish) -> Attempt:
    arms.ledger.once(
        "attempt", treatment=treatment.name, change=treatment.text, why=treatment.action.why
    )
    made = arms.plan
    count = wish.resamples or RESAMPLES.get(made.diagnosis.run.trainer.name, 1)
    controls: list[Run] = []
    news: list[Run] = []
    for seed in range(1, count + 1):
        control = arms.control(seed)
        new = arms.change(treatment, seed)
        if new is None:
            return Attempt(treatment, "failed")
        if control is not None:
            controls.append(control)
            here = arrival(control, new, treatment)
            if not here.arrived:
                arms.ledger.once("not-arrived", treatment=treatment.name, seed=seed, why=here.why)
                return Attempt(treatment, here.outcome)
        news.append(new)
    verdict = smoke(
        made.diagnosis,
        news,
        controls,
        steps=made.steps,
        start=_begin(made, news),
        kind=treatment.action.kind,
        include_old=made.checkpoint is not None,
        toward=made.toward,
    )
    arms.ledger.once("judged", treatment=treatment.name, change=treatment.text, **figures(verdict))
    if verdict.verdict != "better":
        outcome = "not-arrived" if verdict.reason == "not-arrived" else verdict.verdict
        return Attempt(treatment, outcome, verdict)
    arms.tell("judged", verdict=verdict)
    return _gone_on(arms, Attempt(treatment, "better", verdict), wish)


def _on_all_the_same(arms: Arms, attempt: Attempt, wish: Wish) -> Attempt:
    arms.ledger.once("went-on-all-the-same", treatment=attempt.treatment.name)
    went = _gone_on(arms, attempt, wish)
    if went.outcome != "rescued" or went.after is None:
        return went
    # Nothing is cured where the old run, as short, would not have been called ill either.
    made, after = arms.plan, went.after.run
    shows = made.checkpoint is None or shows_until(made.diagnosis, after.last)
    arms.ledger.once("old-run-as-long", treatment=attempt.treatment.name, fails=shows)
    return went if shows else replace(went, outcome="inconclusive")


def _gone_on(arms: Arms, attempt: Attempt, wish: Wish) -> Attempt:
    from klinic.diagnose import judge

    run = arms.onward(attempt.treatment, wish.on)
    if run is None:
        return replace(attempt, outcome="failed")
    assert attempt.verdict is not None
    return concluded(arms.ledger, attempt.treatment, attempt.verdict, judge(run), home(run))


def _begin(made: Plan, news: list[Run]) -> int:
    """The first step after the checkpoint: a trainer that keeps the old history in its log began long before."""
    first = max(run.first for run in news)
    return first if made.checkpoint is None or first >= made.start else made.start + 1
