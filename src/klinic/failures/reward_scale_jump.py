"""The scale of the reward changes from one row to the next, and the policy did not."""

from __future__ import annotations

from klinic.curves.jumps import Jump, change_at, jump
from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, seen

SURE = 6.0  # noise units of the jump (failure_modes.json)
STILL = 0.07  # change of acc that counts as none (a flat share, curves/shape.py)
STILL_Z = 2.0  # noise units of it
SPREAD = 1.5  # times the own std in the same row: the scale, not only the mean (our choice)
RETURNS = 3.0  # times the own std of the returns (our choice; the lab's switched scale: 1e2)
NEAR = 2  # rows from a restart: then the restart is looked at first
WRONG = -0.5  # explained variance at which the critic makes the returns (value-blowup's limit)
RESPONDS = 2.0  # times the own gradient norm, in the rows after: worth saying
DRIVEN = 5.0  # times: the new scale drives the step (the lab's switched scale: 1e2; gradient-spike's height)


@failure(
    family="reward",
    stage="scale",
    explains="kl-spike gradient-spike value-blowup recovered-spike",
    treatments=(
        Treatment("inspect", "reward_config"),
        Treatment("fix-reward", "reward_scale", restart="may"),
    ),
    restart="may",
)
def reward_scale_jump(facts: Facts) -> Verdict:
    """Need: reward or returns jump within a row, acc does not. Veto: a restart, or the verifier's own errors."""
    reward, returns, acc = (facts.shape(r) for r in ("reward", "returns_std", "acc"))
    if reward is None and returns is None:
        facts.need("reward")
    if facts.few:
        return ruled_out(seen(facts, "reward", "against", "no-jump"))
    found = _returns(facts)
    role = "returns_std"
    if found is None and reward is not None:
        at = jump(reward)
        found, role = (at if at is not None and at.z >= SURE else None), "reward"
    if found is None:
        return ruled_out(seen(facts, "reward", "against", "no-jump"))
    if any(abs(found.step - s.first) <= NEAR for s in facts.run.segments[1:]):
        return ruled_out(Evidence(role, "against", "restart", values={"step": found.step}))
    wider = _wider(facts, found)
    if role == "returns_std" and wider is None and _critics(facts):
        return ruled_out(seen(facts, "reward_std", "against", "critic", step=found.step))
    errors = facts.shape("verifier_error")
    if errors is not None and change_at(errors, found.step)[1] >= SURE:
        return ruled_out(seen(facts, "verifier_error", "against", "verifier"))
    if acc is None and wider is None and role == "reward":
        facts.need("acc")
    if acc is not None:
        change, z = change_at(acc, found.step)
        if abs(change) >= STILL and z >= STILL_Z:
            return ruled_out(seen(facts, "acc", "against", "acc-moves", step=found.step))
    answer, factor = _gradient(facts, found)
    return present(
        "act" if wider is not None and factor >= DRIVEN else "caution",
        Onset(found.step, found.step, found.step),
        Evidence(
            role,
            "for",
            "jump",
            "surges" if found.after > found.before else "plunges",
            found.before,
            found.after,
            found.step,
            {"step": found.step},
        ),
        seen(facts, "acc", "for", "acc-still") if acc is not None else None,
        wider,
        _part(facts, found),
        answer,
    )


def _returns(facts: Facts) -> Jump | None:
    returns = facts.shape("returns_std")
    if returns is None:
        return None
    found = jump(returns)
    if found is None or found.z < SURE or found.before <= 0:
        return None
    return (
        found
        if max(found.after / found.before, found.before / max(found.after, 1e-9)) >= RETURNS
        else None
    )


def _critics(facts: Facts) -> bool:
    """Whether the returns of GAE follow a critic that went wrong: the rewards kept their spread, or it explains nothing."""
    explained = facts.shape("explained_variance")
    return facts.shape("reward_std") is not None or (
        explained is not None and explained.lowest < WRONG
    )


def _wider(facts: Facts, found: Jump) -> Evidence | None:
    """The spread of the rewards changed in the same row."""
    spread = facts.shape("reward_std")
    if spread is None:
        return None
    change, z = change_at(spread, found.step)
    before = float(spread.until(found.step)[-8:].mean()) if len(spread.until(found.step)) else 0.0
    quotient = (before + change) / before if before > 0 else 1.0
    if z < SURE or 1 / SPREAD < quotient < SPREAD:
        return None
    return seen(facts, "reward_std", "for", "spread", times=quotient)


def _part(facts: Facts, found: Jump) -> Evidence | None:
    """The part of the reward that jumped, where parts are logged."""
    for name, part in facts.named("reward_part/").items():
        change, z = change_at(part, found.step)
        if z >= SURE and abs(change) >= 0.5 * abs(found.after - found.before):
            word = name.removeprefix("reward_part/")
            return Evidence(f"reward ({word})", "for", "part", values={"part": word})
    return None


def _gradient(facts: Facts, found: Jump) -> tuple[Evidence | None, float]:
    """How many times the gradient grew with it: advantages are not normalised, so the step grew as well."""
    gradient = facts.shape("grad_norm")
    if gradient is None:
        return None, 1.0
    before, after = gradient.until(found.step)[-8:], gradient.since(found.step)[:8]
    if not len(before) or not len(after) or before.mean() <= 0:
        return None, 1.0
    factor = float(after.mean() / before.mean())
    if factor < RESPONDS:
        return None, factor
    return seen(facts, "grad_norm", "for", "gradient-answers", times=factor), factor
