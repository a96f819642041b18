"""What a run needs of each card, side by side, before it starts: by the longest sequence, not by the mean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from klinic.memory.models import Model, kv_token

GIB = 2**30
# Bytes a parameter, as weights, gradients, optimizer (ZeRO: Rajbhandari et al. 2020, section 3.1, K = 12). FSDP keeps
# its own float32 copy as the weights. "pure" trains in bfloat16 alone, Adam's moments too.
STATES = {"zero": (2, 2, 12), "fsdp": (4, 4, 8), "pure": (2, 2, 4)}
ADAPTER = (4, 4, 8)  # LoRA adapters are trained in float32 (peft, autocast_adapter_dtype)
# Which of the three a stage divides among the cards (ZeRO, figure 1).
DIVIDED = {"none": "", "zero1": "o", "zero2": "go", "zero3": "wgo", "fsdp": "wgo"}
# Logits and what a log-softmax with its gradient keeps: bfloat16 logits and gradient, float32 log-probs and gradient.
# TRL issue 3678 measured 11.0 bytes on the way forward alone, with entropy.
LOGITS = 12
FUSED_CHUNK = 1024  # tokens whose logits exist at once under a fused loss (Liger's chunked loss)
CONTEXT = 1.0  # GiB: CUDA context, NCCL buffers, workspaces
ASLEEP = 1.2  # GiB a sleeping vLLM still holds (vLLM issue 28714: 1.19)
# The sampler's own peak: vLLM reports 110 kB a prefilled token for Llama-3.1-8B (issue 10517: 20000 and 29000 tokens),
# which is 8 bytes x the feed-forward width; and the logits of as many sequences as it may hold.
PREFILL, BATCHED, SEQUENCES, SAMPLED = 8, 8192, 256, 10
ENGINE = 0.5  # GiB outside of torch; vLLM reports 0.1 to 1.8
LEAST, GOOD = 0.10, 0.15  # margin (seed 000: "leave 10 to 15 %")


@dataclass(frozen=True, slots=True)
class Plan:
    """A run's sizes. gpu: GiB of one card. micro: sequences of one update's micro batch. share: the sampler's of a card.

    offload: none, optimizer or all. lora: rank, 0 for full training. together: sampler and trainer share the cards.
    """

    model: Model
    dtype: str = "mixed"
    gpus: int = 8
    gpu: float = 80.0
    sharding: str = "fsdp"
    tp: int = 1
    micro: int = 1
    prompt: int = 1024
    completion: int = 2048
    group: int = 8
    share: float = 0.5
    lora: int = 0
    checkpointing: bool = True
    fused: bool = False
    offload: str = "none"
    reference: bool = True
    critic: bool = False
    together: bool = True
    sleeps: bool = True
    completion_logits: bool = False  # logits of the answer's tokens only (TRL), not of the prompt's

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class Side:
    """rows: what lies on one card at the peak, in GiB, in order. card: GiB of the card."""

    name: str
    rows: dict[str, float]
    card: float

    @property
    def total(self) -> float:
        """GiB in use at the peak."""
        return sum(self.rows.values())

    @property
    def margin(self) -> float:
        """Share of the card left free; below 0 it does not fit."""
        return 1 - self.total / self.card


@dataclass(frozen=True, slots=True)
class Ledger:
    """Both sides, and what the sampler's cache holds. room: tokens; at_once: longest sequences at a time."""

    plan: Plan
    train: Side
    rollout: Side
    room: int
    at_once: float

    @property
    def margin(self) -> float:
        """The smaller of both margins."""
        return min(self.train.margin, self.rollout.margin)

    @property
    def starts(self) -> bool:
        """Whether the sampler's cache holds one longest sequence, without which it refuses to start."""
        return self.at_once >= 1


def states(plan: Plan) -> tuple[float, float, float]:
    """Weights, gradients and optimizer of the policy on one card, GiB, before any offload."""
    kind = (
        "pure" if plan.dtype == "pure" else "zero" if plan.sharding.startswith("zero") else "fsdp"
    )
    per = STATES[kind]
    count = plan.model.parameters
    cut = [plan.gpus if letter in DIVIDED[plan.sharding] else 1 for letter in "wgo"]
    if plan.lora:
        trained = plan.model.adapters(plan.lora)
        frozen = 2 * count / cut[0]
        return (
            (frozen + ADAPTER[0] * trained / cut[0]) / GIB,
            ADAPTER[1] * trained / cut[1] / GIB,
            ADAPTER[2] * trained / cut[2] / GIB,
        )
    weights, gradients, optimizer = (b * count / c / GIB for b, c in zip(per, cut, strict=True))
    return weights, gradients, optimizer


def layer_activations(shape: Model) -> int:
    """Bytes a token that one layer keeps for its backward pass, with flash attention.

    Counted as in Korthikanti et al. 2022, section 4.1, for a gated net without dropout: inputs and norms (18 h; the
    norms in float32), queries, keys, values and the attention's result (4 q + 4 kv), and the net (8 ffn).
    """
    wide = shape.ffn * shape.active
    return 18 * shape.hidden + 4 * shape.attention + 4 * shape.kv_heads * shape.head + 8 * wide


def activations(plan: Plan) -> float:
    """Activations of one micro batch, GiB: all layers, or their inputs and one layer in full under checkpointing."""
    shape, tokens = plan.model, plan.micro * plan.longest
    if plan.checkpointing:
        return tokens * (2 * shape.layers * shape.hidden + layer_activations(shape)) / GIB
    return tokens * shape.layers * layer_activations(shape) / GIB


def logits(plan: Plan) -> float:
    """The logits of one micro batch with what the loss keeps of them, GiB."""
    tokens = plan.micro * (plan.completion if plan.completion_logits else plan.longest)
    return (
        (min(tokens, FUSED_CHUNK) if plan.fused else tokens) * plan.model.vocabulary * LOGITS / GIB
    )


def gathered(plan: Plan) -> float:
    """What full sharding gathers of the weights at once, GiB: this layer and the next, in 16 bit, or the embedding."""
    if "w" not in DIVIDED[plan.sharding] or plan.gpus == 1:
        return 0.0
    largest = max(2 * plan.model.layer, plan.model.vocabulary * plan.model.hidden)
    return 2 * largest / GIB


def sampler_peak(plan: Plan) -> float:
    """What the sampler needs beside weights and cache, GiB."""
    tokens = max(BATCHED, plan.longest)
    wide = plan.model.ffn * plan.model.active
    return (
        tokens * PREFILL * wide / plan.tp + SEQUENCES * plan.model.vocabulary * SAMPLED
    ) / GIB + ENGINE


def ledger(plan: Plan) -> Ledger:
    """The whole budget of one card."""
    weights, gradients, optimizer = states(plan)
    frozen = (
        weights
        if plan.lora
        else 2 * plan.model.parameters / (plan.gpus if "w" in DIVIDED[plan.sharding] else 1) / GIB
    )
    critic = (weights + gradients + optimizer) if plan.critic else 0.0
    pool = plan.share * plan.gpu
    kept = weights * (plan.offload != "all") + optimizer * (plan.offload == "none")
    train = {
        "weights": weights,
        "gradients": gradients,
        "optimizer": optimizer,  # offloaded state comes back for the step, when activations are gone
        "gathered": gathered(plan),
        "reference": frozen if plan.reference and not plan.lora and plan.offload != "all" else 0.0,
        "critic": critic if plan.offload == "none" else 0.0,
        "activations": activations(plan),
        "logits": logits(plan),
        "sampler": (ASLEEP if plan.sleeps else pool) if plan.together else 0.0,
        "context": CONTEXT,
    }
    if plan.offload != "none":
        # Either the optimizer's step or a micro batch is the peak, never both.
        step, batch = optimizer, train["activations"] + train["logits"]
        train["optimizer"] = max(0.0, step - batch)
    sampler_weights = 2 * plan.model.parameters / plan.tp / GIB
    peak = sampler_peak(plan)
    cache = pool - sampler_weights - peak
    rollout = {
        "weights": sampler_weights,
        "activations": peak,
        "kv-cache": max(0.0, cache),
        "trainer": (kept + train["reference"] + train["critic"] + CONTEXT)
        if plan.together
        else 0.0,
    }
    room = max(0, int(cache * GIB / (kv_token(plan.model) / plan.tp)))
    return Ledger(
        plan,
        Side("train", train, plan.gpu),
        Side("rollout", rollout, plan.gpu),
        room,
        room / plan.longest,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one knob, and the margin it would leave. enough: it fits then, with the least margin."""

    knob: str
    new: object
    margin: float
    enough: bool


def first_change(now: Ledger, knobs: Collection[str] = ()) -> Change | None:
    """The first of the changes, in the field guide's order, that alone makes it fit; else the one that frees most.

    knobs: those the trainer has, all where empty.
    """
    if now.margin >= LEAST and now.starts:
        return None
    plan = now.plan
    tried: list[Change] = []
    for knob, new, changed in _changes(plan):
        if knobs and knob not in knobs:
            continue
        then = ledger(changed)
        tried.append(Change(knob, new, then.margin, then.margin >= LEAST and then.starts))
        if tried[-1].enough:
            return tried[-1]
    better = [change for change in tried if change.margin > now.margin + 0.005]
    return max(better, key=lambda c: c.margin, default=None)


def _changes(plan: Plan) -> list[tuple[str, object, Plan]]:
    """Seed 000: lower the micro batch, then checkpointing, then the sampler's share; then what frees the states."""
    found: list[tuple[str, object, Plan]] = []
    micro = plan.micro
    while micro > 1:
        micro = micro // 2
        found.append(("micro_batch", micro, replace(plan, micro=micro)))
    if not plan.checkpointing:
        found.append(("grad_checkpoint", "true", replace(plan, checkpointing=True)))
    if not plan.fused:
        found.append(("fused_logits", "true", replace(plan, fused=True)))
    for share in (
        0.9,
        0.85,
        0.8,
        0.75,
        0.7,
        0.65,
        0.6,
        0.55,
        0.5,
        0.45,
        0.4,
        0.35,
        0.3,
        0.25,
        0.2,
        0.15,
    ):
        found.append(("rollout_memory", share, replace(plan, share=share)))
    if plan.together and not plan.sleeps:
        found.append(("rollout_sleep", "true", replace(plan, sleeps=True)))
    if plan.offload == "none":
        found.append(("optimizer_offload", "true", replace(plan, offload="optimizer")))
    if plan.offload != "all":
        found.append(("param_offload", "true", replace(plan, offload="all")))
    return found
