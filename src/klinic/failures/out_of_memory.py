"""The run died of memory: in the sampler, in the trainer, or on the host."""

from __future__ import annotations

from math import floor
from pathlib import PurePath
from typing import Any

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import (
    AS_SAID,
    Evidence,
    Treatment,
    Verdict,
    failure,
    present,
    ruled_out,
    set_knob,
)
from klinic.memory import Crash
from klinic.memory.sizes import written
from klinic.memory.tensor import Tensor, guilty

WENT_ON = 5  # steps logged after the error: the run lived on, it was retried or relaunched (chosen)
GREW = 1.15  # the longest response against its level before: longer than batches differ by (chosen)
LAST_STEPS = 5  # before the error; a peak is one batch's, so few are asked (seed 000: "one batch with a very long answer")
SPARE = (
    0.95  # of the memory free at the sampler's start; its own context takes some (vLLM, worker.py)
)

POOL_SMALL = ("pool-no-blocks", "pool-no-room", "pool-too-short")


@failure(
    family="memory",
    stage="implementation",
    treatments=(
        set_knob("max_model_len", to=AS_SAID, only_if="pool-fits-shorter"),
        set_knob("rollout_memory", scale=1.2, only_if="pool-small", why="rollout_memory_more"),
        set_knob("rollout_memory", scale=0.8, only_if="pool-taken"),
        set_knob("allocator", to="expandable_segments:True", only_if="fragmented"),
        set_knob("rollout_memory", scale=0.8, only_if="wake"),
        set_knob("max_model_len", to=AS_SAID, only_if="running"),
        set_knob("concurrency", scale=0.5, only_if="running"),
        set_knob("rollout_memory", scale=0.9, only_if="running"),
        set_knob("chunked_entropy", to="true", only_if="entropy"),
        set_knob("optimizer_offload", to="true", only_if="optimiser"),
        set_knob("logprob_token_budget", scale=0.5, only_if="log-prob-budget"),
        set_knob("logprob_micro_batch", scale=0.5, least=1, only_if="log-prob"),
        set_knob("token_budget", scale=0.5, only_if="update-budget"),
        set_knob("micro_batch", scale=0.5, least=1, only_if="update"),
        set_knob("fused_logits", to="true", only_if="logits"),
        set_knob("param_offload", to="true", only_if="weights"),
        set_knob("grad_checkpoint", to="true", only_if="train"),
        set_knob("rollout_memory", scale=0.8, only_if="train"),
        Treatment("inspect", "host_memory", only_if="host"),
        Treatment("inspect", "memory", only_if="device"),
        set_knob("save_interval", to=20, only_if="unsaved"),
    ),
)
def out_of_memory(facts: Facts) -> Verdict:
    """Need: a memory error in the log. Side and stage are read from the message and the frames, the innermost first."""
    crash = facts.crash
    if crash is None:
        return ruled_out()
    if not crash.by_memory:
        return ruled_out(
            Evidence(
                "memory",
                "against",
                "another-death",
                values={
                    "at": crash.at,
                    "where": PurePath(crash.at).name,
                    "text": crash.message[:160],
                },
            )
        )
    step = crash.step if crash.step is not None else facts.run.last
    after = facts.run.last - step
    tensor = guilty(crash.stack, crash.sizes, _longest_batch(facts))
    said = {
        "at": crash.at,
        "where": PurePath(crash.at).name,
        "text": _shortened(crash.message),
        "stage": crash.stage or None,
        "tensor": tensor.name if tensor else None,
        "cases": _cases(crash, tensor, facts),
        "next": _next(crash, facts),
    }
    key = f"side-{crash.side or 'unknown'}" if crash.kind == "memory" else crash.kind
    return present(
        "caution" if after >= WENT_ON else "stop",
        Onset(step, step, step),
        Evidence("memory", "for", key, values=said),
        _stage(crash),
        *_sizes(crash),
        _tensor(tensor, crash),
        _longest(facts, step),
        _ranks(crash),
        Evidence("memory", "for", "went-on", values={"last": facts.run.last})
        if after >= WENT_ON
        else None,
        _saved(facts),
        sure=crash.kind == "memory",
        side=crash.side,
    )


def _shortened(text: str) -> str:
    """The message without the advice that follows the sizes, which are said apart."""
    return text.split(". Tried to allocate")[0].split(" GPU 0 has")[0][:160]


def _stage(crash: Crash) -> Evidence | None:
    if not crash.stage or crash.side is None or crash.kind != "memory":
        return None
    frame = crash.stack.top[0] if crash.stack.top else ""
    return Evidence("memory", "for", f"stage-{crash.stage}", values={"frame": frame})


def _sizes(crash: Crash) -> list[Evidence]:
    found, said = crash.sizes, []
    if found.tried is not None and found.total is not None and found.free is not None:
        values = {
            "tried": written(found.tried),
            "free": written(found.free),
            "total": written(found.total),
        }
        said.append(Evidence("memory", "for", "asked", values=values))
    elif found.tried is not None:
        said.append(Evidence("memory", "for", "asked-only", values={"tried": written(found.tried)}))
    elif found.used is not None and found.total is not None:
        values = {"used": written(found.used), "total": written(found.total)}
        said.append(Evidence("memory", "for", "node-full", values=values))
    elif found.free is not None and found.wanted is not None and found.total is not None:
        values = {
            "free": written(found.free),
            "wanted": written(found.wanted),
            "total": written(found.total),
        }
        said.append(Evidence("memory", "for", "start-free", values=values))
    elif found.fits is not None:
        said.append(Evidence("memory", "for", "fits", values={"tokens": found.fits}))
    if found.fragmented and found.unused is not None and found.tried is not None:
        values = {"unused": written(found.unused), "tried": written(found.tried)}
        said.append(Evidence("memory", "for", "in-pieces", values=values))
    if found.crowded and found.others is not None:
        said.append(Evidence("memory", "for", "crowded", values={"others": written(found.others)}))
    return said


def _tensor(tensor: Tensor | None, crash: Crash) -> Evidence | None:
    if tensor is None:
        return None
    if tensor.name == "logits" and tensor.tokens and crash.sizes.tried:
        values = {
            "tried": written(crash.sizes.tried),
            "tokens": tensor.tokens,
            "vocabulary": tensor.vocabulary,
            "width": tensor.width,
        }
        sentence = "tensor-logits-exact" if tensor.exact else "tensor-logits-about"
        return Evidence("memory", "for", sentence, values=values)
    return Evidence("memory", "for", f"tensor-{tensor.name}")


def _longest(facts: Facts, step: int) -> Evidence | None:
    """The peak goes by the longest response, not by the mean (seed 000): did the longest grow before the error?"""
    curve = facts.shape("len_max")
    if curve is None:
        return None
    lengths = curve.values[curve.steps <= step]
    if len(lengths) < 2 * LAST_STEPS:
        return None
    before, last = (
        float(sorted(lengths[:-LAST_STEPS])[len(lengths[:-LAST_STEPS]) // 2]),
        float(lengths[-LAST_STEPS:].max()),
    )
    onset = int(curve.steps[curve.steps <= step][-LAST_STEPS])
    if last < GREW * before:
        return None
    return Evidence("len_max", "for", "longest-grew", "rises", before, last, onset)


def _ranks(crash: Crash) -> Evidence | None:
    if len(crash.processes) < 2:
        return None
    shown = ", ".join(crash.processes[:4]) + (" ..." if len(crash.processes) > 4 else "")
    return Evidence("memory", "for", "ranks", values={"n": len(crash.processes), "who": shown})


def _saved(facts: Facts) -> Evidence | None:
    whole = [c for c in facts.run.checkpoints if not c.missing]
    return Evidence("memory", "for", "saved", values={"name": whole[-1].name}) if whole else None


def _needed(facts: Facts) -> int | None:
    """The longest sequence the run can make, in tokens: prompt and response at their caps."""
    prompt, response = facts.number("max_prompt"), facts.number("max_new_tokens")
    return round(prompt + response) if prompt and response else None


def _longest_batch(facts: Facts) -> int | None:
    """Tokens of a micro batch of longest sequences."""
    needed, rows = _needed(facts), facts.number("micro_batch")
    return round(needed * rows) if needed and rows else None


def _next(crash: Crash, facts: Facts) -> dict[str, Any]:
    """Next values that the message or the configuration gives exactly, by knob."""
    found, needed = crash.sizes, _needed(facts)
    values: dict[str, Any] = {}
    if crash.sign == "pool-no-free" and found.free and found.total:
        values["rollout_memory"] = floor(100 * SPARE * found.free / found.total) / 100
    if found.fits is not None and (needed is None or found.fits >= needed):
        values["max_model_len"] = needed or found.fits
    elif needed is not None and crash.side == "rollout":
        set_to = facts.number("max_model_len")
        if set_to is None or set_to > needed:
            values["max_model_len"] = needed
    return values


def _cases(crash: Crash, tensor: Tensor | None, facts: Facts) -> list[str]:
    """Which of the treatments bear on this error."""
    side, stage = crash.side, crash.stage
    saves = bool(facts.run.checkpoints) or (facts.number("save_interval") or 0) > 0
    cases = [] if saves else ["unsaved"]
    if side != "host":
        cases.append("device")
    if side == "rollout" and crash.sign in POOL_SMALL:
        cases.append("pool-small")
        if crash.sizes.fits is not None and "max_model_len" in _next(crash, facts):
            cases.append("pool-fits-shorter")
    elif side == "rollout" and crash.sign == "pool-no-free":
        cases.append("pool-taken")
    elif side == "rollout" and stage in ("wake", "weight-sync", "load", "kv-cache"):
        cases += ["wake", "weights"]
    elif side == "rollout":
        cases.append("running")
    elif side == "train":
        budget = "-budget" if facts.setting("dynamic_batch") is True else ""
        # Sleeping samplers map memory themselves and do not bear expandable segments (vLLM cumem.py, torch_memory_saver).
        if crash.sizes.fragmented and facts.setting("rollout_sleep") is not True:
            cases.append("fragmented")
        if stage == "optimiser":
            cases.append("optimiser")
        elif stage in ("load", "onload", "weight-sync", "save"):
            cases.append("weights")
        else:
            cases.append(("log-prob" if stage.endswith("log-prob") else "update") + budget)
        if crash.stack.entropy:
            cases.append("entropy")
        if tensor is not None and tensor.name == "logits":
            cases.append("logits")
    return cases
