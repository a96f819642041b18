"""The reward rises and the share of right answers does not follow."""

from __future__ import annotations

import re

from klinic.curves.onset import Onset
from klinic.curves.shape import Shape
from klinic.curves.together import parting
from klinic.facts import Facts, NotLogged
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen
from klinic.failures._spread import spread_of
from klinic.failures._trend import evaluations, fallen, tasks
from klinic.run import Form
from klinic.vitals import players

LEADER_Z = 6.0  # standard errors by which the reward must rise after the split (science.md 1.2 e)
FOLLOWER_Z = 1.5  # acc must rise by less than this on the same window (failure_modes.json)
FALL_Z = -3.0  # acc clearly falls
SHARE_OF_RISE = 0.3  # part of the reward's whole rise that must come after the split
FULL = 0.95  # at this acc nothing is left to follow with
GROWN, CUT = (
    1.4,
    0.15,
)  # growth and truncated share from which the length is judged first (failure_modes.json)
SHRUNK = 0.5  # of the early length, length-collapse's own limit: then length-collapse says what the reward pays for
PAID = 0.6  # share of the reward's rise that one part other than the right answer or the length must explain: most of it (our choice)
NO_LOOPHOLE = re.compile(r"correct|acc|answer|right|len|trunc|overlong|kl", re.IGNORECASE)
LOST_TASK, TASK_SURE, TASK_PART = (
    0.10,
    3.0,
    0.5,
)  # a task that breaks meanwhile, as in eval-regression
TASK_POINTS, TASKS_TOLD = 6, 3
LOW = 0.1  # of the answers right: next to none (our choice)
DISTINCT = 0.9  # of a group's samples are distinct texts
NAMED, WORDS_NAMED = 3, 5  # samples and words that a sentence names
ACC_POINTS = 8  # a sparse acc cannot say that it stands still


@failure(
    family="reward",
    stage="reward",
    explains="length-bias entropy-collapse length-collapse length-explosion zero-advantage kl-runaway eval-regression truncation-rise plateau too-hard "
    "reward-collapse format-collapse repetition template-collapse language-mixing refusal-rise factuality-drop eval-overfit length-bias",
    treatments=(
        Treatment("fix-reward", "reward"),
        Treatment("inspect", "rollouts"),
        Treatment("inspect", "reward_parts"),
        Treatment("fix-reward", "task_normalisation", only_if="tail-down"),
        Treatment("fix-reward", "truncated_reward", only_if="cut-paid"),
    ),
)
def reward_hacking(facts: Facts) -> Verdict:
    """Need: after some split the reward rises and acc does not. Veto: acc rises along, or is full."""
    if facts.run.samples is not None and facts.run.samples.forms:
        return _shown(facts, facts.run.samples.forms)
    reward, acc = facts.need("reward", "acc")
    metric = facts.metric("acc")
    if metric is not None and metric.name in players("factuality", facts.run.curves):
        raise NotLogged("acc")  # an evaluation of facts is no measure of the trained task
    if facts.few or acc.n < ACC_POINTS:
        if (
            acc.n >= 3
            and reward.n >= 3
            and reward.last > reward.first
            and acc.last < 0.5 * acc.first
        ):
            return present(
                "caution",
                None,
                seen(facts, "reward", "for", "reward-up"),
                seen(facts, "acc", "for", "acc-down"),
            )
        return ruled_out(seen(facts, "acc", "against", "too-sparse"))
    length, trunc = facts.shape("len"), facts.level("trunc")
    if length is not None and length.fell and length.after <= SHRUNK * length.before:
        return ruled_out(seen(facts, "len", "against", "shrunk"))
    part = _paid_part(facts)
    if (
        part is None
        and length is not None
        and trunc is not None
        and length.after >= GROWN * length.before
        and trunc.after >= CUT
        and trunc.rose
    ):
        return ruled_out(
            seen(facts, "trunc", "against", "cut")
        )  # length first; it says itself if the reward pays
    parted = parting(reward, acc, LEADER_Z, FOLLOWER_Z)
    whole = reward.highest - reward.lowest
    full = facts.level("acc") is not None and acc.after >= FULL
    if parted is None or full or parted.leader_change < SHARE_OF_RISE * whole:
        return ruled_out(seen(facts, "acc", "against", "together"))
    falls = parted.follower_z <= FALL_Z
    begin = acc.onset if falls and acc.onset is not None else None
    at = begin if begin is not None else reward.onset
    if at is not None and reward.onset is not None and _width(reward.onset) < _width(at) / 2:
        at = reward.onset  # a step that is hardly known gives way to one that is
    broken = _broken(facts)
    return present(
        "stop" if falls else "act",
        at,
        seen(facts, "reward", "for", "reward-up", change=parted.leader_change),
        seen(
            facts, "acc", "for", "acc-down" if falls else "acc-flat", change=parted.follower_change
        ),
        part,
        seen(facts, "entropy", "for", "entropy-normal")
        if (e := facts.shape("entropy")) is not None and not e.changed
        else None,
        *spread_of(facts),
        *broken,
        _again(facts, parted.step),
        slice=f"task={broken[0].values['task']}" if broken else None,
        sure=falls and parted.leader_z > 2 * LEADER_Z,
    )


def _shown(facts: Facts, forms: tuple[Form, ...]) -> Verdict:
    """The samples themselves show what is paid: no curve has to say it, and curves that do are further evidence."""
    first = min(forms, key=lambda form: form.step)
    reward, acc = facts.shape("reward"), facts.shape("acc")
    lost = acc is not None and acc.fell
    told = [evidence for form in forms for evidence in _form(form)]
    return present(
        "stop" if lost or (acc is not None and acc.after <= LOW) else "act",
        Onset(first.step, first.low, first.high),
        *told,
        seen(facts, "reward", "for", "reward-up") if reward is not None and reward.rose else None,
        seen(facts, "acc", "for", "acc-down") if lost else None,
        _paid_part(facts),
        seen(facts, "uniq", "for", "still-different")
        if (u := facts.shape("uniq")) is not None and u.after >= DISTINCT
        else None,
        sure=True,
    )


def _form(form: Form) -> list[Evidence]:
    """What one form looks like, and what it earns."""
    named = {"examples": ", ".join(form.examples[:NAMED]), "trait": form.trait, "form": form.name}
    if form.words:
        named["words"] = ", ".join(form.words[:WORDS_NAMED])
    if form.part is not None:
        named["part"] = form.part
    sentence = f"form-{form.name}-words" if form.words else f"form-{form.name}"
    told = [
        Evidence(
            f"samples ({form.name})",
            "for",
            sentence,
            "rises",
            form.before,
            form.after,
            form.step,
            named,
        )
    ]
    if form.paid is not None and form.unpaid is not None and form.honest is not None:
        earned = {"paid": form.paid, "unpaid": form.unpaid, "honest": form.honest}
        told.append(
            Evidence(
                f"samples ({form.name}, pay)",
                "for",
                "form-earns",
                "flat",
                form.unpaid,
                form.paid,
                None,
                earned,
            )
        )
    if form.part is not None:
        told.append(
            Evidence(
                f"samples ({form.name}, part)",
                "for",
                "form-part",
                "flat",
                None,
                None,
                None,
                {"part": form.part},
            )
        )
    return told


def _broken(facts: Facts) -> list[Evidence]:
    """Which tasks or evaluations broke meanwhile, the first one first. The curve to judge by remains acc."""
    evals = evaluations(facts, TASK_POINTS)
    curves = {**tasks(facts, TASK_POINTS), **evals}
    if len(curves) < 2:  # one evaluation is no slice
        return []
    return [
        Evidence(
            "acc" if task in evals else f"acc_task/{task}",
            "for",
            "task-broke" if i == 0 else "then-broke",
            "falls",
            went.before,
            went.after,
            None,
            {"task": task, "step": went.step},
        )
        for i, (task, _, went) in enumerate(fallen(curves, LOST_TASK, TASK_SURE, TASK_PART))
        if i < TASKS_TOLD
    ]


def _again(facts: Facts, step: int) -> Evidence | None:
    """That it began after a restart: where a hole was closed then, this is the next one."""
    restart = facts.run.segments[-1].first if len(facts.run.segments) > 1 else None
    if restart is None or step < restart:
        return None
    reward = facts.shape("reward")
    assert reward is not None
    return Evidence(
        "reward",
        "for",
        "next-hole",
        reward.word,
        reward.before,
        reward.after,
        None,
        {"step": restart},
    )


def _width(onset: Onset) -> int:
    return onset.high - onset.low


def _paid_part(facts: Facts) -> Evidence | None:
    """The reward part that rises in place of right answers, where parts are logged; the length is judged elsewhere."""
    reward = facts.shape("reward")
    if reward is None or reward.after <= reward.before:
        return None
    found: tuple[float, str, Shape] | None = None
    parts = facts.named("reward_part/")
    if len(parts) < 2:  # a single part is the reward itself
        return None
    for name, part in parts.items():
        word = name.removeprefix("reward_part/")
        if NO_LOOPHOLE.search(word):
            continue
        share = (part.after - part.before) / (reward.after - reward.before)
        if share >= PAID and (found is None or share > found[0]):
            found = (share, word, part)
    if found is None:
        return None
    _, word, part = found
    return Evidence(
        f"reward ({word})",
        "for",
        "part-rises",
        part.word,
        part.before,
        part.after,
        None,
        {"part": word},
    )
