"""The training acc rises and the held-out evaluation of its task does not follow."""

from __future__ import annotations

from klinic.curves.shape import Shape
from klinic.curves.together import parting
from klinic.facts import Facts, NotLogged
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._trend import evaluations, fallen, tasks

LEADER_Z = (
    6.0  # standard errors by which the training acc must rise after the split (science.md 1.2 e)
)
FOLLOWER_Z = 1.5  # an evaluation that rises by less does not follow (as in reward-hacking)
RISE = 0.10  # of the training acc after the split
ABOVE = 0.05  # by which the training acc must end above the evaluation; a harder training set may well be catching up
FULL = 0.95  # at this level an evaluation has nothing left to follow with, and training questions are solved: too-easy
POINTS = 6  # evaluations below which a trend and a swing look alike (our choice)
FALL, SURE = 0.05, 3.0  # from which the evaluation counts as worse, not merely flat
ONCE = 1.05  # passes over the prompts: up to here nothing was seen twice


@failure(
    family="evaluation",
    stage="data",
    explains="eval-regression",
    treatments=(
        Treatment("change-data", "more_data"),
        Treatment("inspect", "decontaminate", restart="no"),
    ),
)
def eval_overfit(facts: Facts) -> Verdict:
    """Need: after some split the training acc rises and the held-out set of its task stays below it. Veto: every prompt was seen once, or all are solved."""
    (train,) = facts.need("train_acc")
    evals = _of_the_trained_task(facts)
    best = max(evals, key=lambda task: evals[task].after)
    parted = parting(train, evals[best], LEADER_Z, FOLLOWER_Z)
    if facts.few or parted is None:
        return ruled_out(seen(facts, "heldout", "against", "follows", evals[best], task=best))
    if parted.leader_change < RISE or evals[best].after >= FULL:
        return ruled_out(seen(facts, "heldout", "against", "follows", evals[best], task=best))
    if train.after < evals[best].after + ABOVE:
        return ruled_out(seen(facts, "heldout", "against", "above", evals[best], task=best))
    epoch = facts.run.curves.get("epoch")
    passes = float(epoch.values[-1]) if epoch is not None and len(epoch.values) else None
    if passes is not None and passes <= ONCE:
        return ruled_out(seen(facts, "train_acc", "against", "seen-once", passes=passes))
    if passes is None and train.after >= FULL:
        return ruled_out(seen(facts, "train_acc", "against", "solved"))
    worse = fallen({best: evals[best]}, FALL, SURE)  # the others are eval-regression's
    at = train.onset if train.onset is not None and train.rose else None
    return present(
        "act" if worse else "caution",
        at,
        seen(facts, "train_acc", "for", "train-up", change=parted.leader_change),
        seen(facts, "train_acc", "for", "passes", passes=passes) if passes is not None else None,
        *(
            Evidence(
                "acc",
                "for",
                "held-down",
                "falls",
                went.before,
                went.after,
                went.step,
                {"task": task},
            )
            for task, _, went in worse[:1]
        ),
        *(() if worse else (seen(facts, "heldout", "for", "held-flat", evals[best], task=best),)),
        slice=f"eval={best}",
    )


def _of_the_trained_task(facts: Facts) -> dict[str, Shape]:
    """Held-out sets of what is trained: the main one, those named like a training task, verl's only validation file.

    Other evaluations may well stay where they are. Raises NotLogged where there is none.
    """
    main = facts.named("eval/main/acc").get("eval/main/acc")
    if main is not None and main.n >= POINTS and main.values.max() <= 1 + 1e-6:
        return {"main": main}
    evals, trained = evaluations(facts, POINTS), tasks(facts, POINTS)
    same = {task: shape for task, shape in evals.items() if task in trained}
    if not same and len(evals) == 1 and facts.run.trainer.name == "verl":
        same = evals
    if not same:
        raise NotLogged("heldout")
    return same
