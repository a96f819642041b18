"""The run died of memory: in the sampler, in the trainer, or on the host."""

from __future__ import annotations

import re

from klinic.curves.onset import Onset
from klinic.facts import Facts
from klinic.failures import Evidence, Treatment, Verdict, failure, present, ruled_out, set_knob

# The innermost frame decides; a colocated sampler is called from a trainer's worker (oom_signatures, native.json).
ROLLOUT = re.compile(
    r"vllm/|sglang/|cumem|llm_engine|kv_cache|wake_up|generate_sequences|model_runner|gpu_worker|EngineCore",
    re.IGNORECASE,
)
TRAIN = re.compile(
    r"transformers/|update_policy|update_actor|compute_log_prob|dp_actor|backward|optimizer|deepspeed|megatron|fsdp_workers|entropy_from_logits|_forward_micro_batch|grpo_trainer|loss",
    re.IGNORECASE,
)
HOST = re.compile(
    r"Killed process|oom-kill|ray\.exceptions\.OutOfMemoryError|memory on the node|SIGKILL|DefaultCPUAllocator",
    re.IGNORECASE,
)


@failure(
    family="memory",
    stage="implementation",
    treatments=(
        set_knob("max_model_len", scale=0.5, only_if="rollout"),
        set_knob("rollout_memory", scale=1.2, only_if="rollout"),
        set_knob("micro_batch", scale=0.5, only_if="train"),
        Treatment("inspect", "memory"),
    ),
)
def out_of_memory(facts: Facts) -> Verdict:
    """Need: a memory error in the log. The side is read from the frames, the innermost first."""
    events = facts.events("out-of-memory")
    if not events:
        return ruled_out()
    side = next((found for event in events if (found := _side(event.lines)) is not None), None)
    step = events[0].step if events[0].step is not None else facts.run.last
    quoted = next(
        (line.strip() for line in reversed(events[0].lines) if "memory" in line.lower()),
        events[0].lines[-1].strip(),
    )
    return present(
        "stop",
        Onset(step, step, step),
        Evidence(
            "memory",
            "for",
            f"side-{side}" if side else "side-unknown",
            values={"at": events[0].at, "text": quoted[:160]},
        ),
        sure=True,
        side=side,
    )


def _side(lines: tuple[str, ...]) -> str | None:
    for line in reversed(lines):
        if HOST.search(line):
            return "host"
        if ROLLOUT.search(line) and not re.search(r"site-packages/torch/", line):
            return "rollout"
        if TRAIN.search(line):
            return "train"
    return None
