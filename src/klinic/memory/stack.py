"""Which side a traceback is on, and what it was doing: read from its frames, the innermost first.

A colocated sampler is called from the trainer's worker, and a trainer's worker from the driver: so the innermost frame
that tells decides. Frames of the model itself (transformers, flash-attention, torch) tell nothing, since the same
model samples and trains; with nothing else they are the trainer's (seed 000: "traceback in the transformers stack").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FRAME = re.compile(r'File "(?P<path>[^"]+)"(?:, line \d+)?(?:,? in (?P<name>\S+))?')
_RICH = re.compile(r"│\s*(?P<path>\S+\.py):\d+ in (?P<name>\w+)")
_HEAD = re.compile(r"ray::([\w.:]+)\(")
_ROOT = re.compile(
    r".*?(?:site-packages|dist-packages)/|.*/(?=(?:verl|slime|openrlhf|trl|vllm|sglang|"
    r"megatron|deepspeed|nemo_rl|skyrl\w*|areal|roll|swift)/)"
)

ENGINE = r"(?:^|/)(?:vllm|sglang|lmdeploy|tensorrt_llm)/\S*"
# Names from trainers/native.md section 11 and the tracebacks it cites; side, stage, pattern. The first that fits a
# frame counts. A frame reads "path in name", followed by its line of code where the traceback prints one.
_RULES: tuple[tuple[str, str, re.Pattern[str]], ...] = tuple(
    (side, stage, re.compile(pattern))
    for side, stage, pattern in (
        (
            "rollout",
            "wake",
            rf"device_allocator/cumem|torch_memory_saver|create_and_map|{ENGINE} in (?:wake_up|"
            rf"resume_memory\w*)|\.wake_up\(",
        ),
        (
            "rollout",
            "kv-cache",
            rf"{ENGINE} in (?:determine_\w*|profile_run|_?initialize_(?:kv_)?cache\w*|"
            rf"_initialize_kv\w*|raise_if_cache\w*|check_enough\w*|get_kv_cache\w*|"
            rf"init_memory_pool|_?allocate\w*|_create_buffers|_init_pools?\w*)",
        ),
        (
            "rollout",
            "graph-capture",
            rf"{ENGINE} in (?:\w*capture\w*|init_(?:cuda|device)_graphs?)",
        ),
        (
            "rollout",
            "weight-sync",
            rf"{ENGINE} in (?:update_\w*weight\w*|reload_weights|\w*receive_weight\w*)",
        ),
        (
            "rollout",
            "load",
            rf"{ENGINE} in (?:load_model|load_weights|initialize_model|get_model|create_weights)",
        ),
        (
            "rollout",
            "generate",
            rf"{ENGINE} in (?:execute_\w*|generate\w*|forward_\w+|run_batch|event_loop\w*|"
            rf"_?sample\w*|step\w*|run_engine\w*|_process_engine\w*|chat|compute_logits)",
        ),
        ("rollout", "", ENGINE),
        (
            "rollout",
            "generate",
            r"(?:vllm|sglang|hf)_rollout\S* in (?:_?generate\w*|_?async_rollout\w*|"
            r"_?req_level\w*)|vllm_engine|transformers/generation/| in (?:_?generate|"
            r"_generate_single_turn|generate_(?!and_score|rollouts)\w+)\b|slime/(?:ray/)?rollout",
        ),
        (
            "train",
            "weight-sync",
            r"sharding_manager|update_weights|sync_weights|broadcast_to_vllm|move_model_to_vllm|"
            r"_sync_fsdp|refit|full_tensor|summon_full_params|gather_full| in rollout_mode",
        ),
        (
            "train",
            "optimiser",
            r"torch/optim/|(?:apex|bitsandbytes)/optim|deepspeed/ops/adam|distrib_optimizer| in (?:_?optimizer_step|optim_step|_multi_tensor_\w+|"
            r"_init_group|initialize_optimizer_states|_take_model_step)\b|optimizer\.step\(|optim\.step\(|zero/stage\w*\.py in step\b",
        ),
        ("train", "save", r" in (?:_?save_checkpoint|save_model\w*|save_pretrained|_save\w*)\b"),
        (
            "train",
            "onload",
            r" in (?:load_fsdp\w*|load_megatron\w*|onload\w*|reload_states|move_to_(?:gpu|"
            r"cuda))\b|load_fsdp_\w+\(",
        ),
        (
            "train",
            "load",
            r" in (?:from_pretrained|_load_pretrained_model|_?build_model\w*|init_model\w*|"
            r"setup_model\w*|fully_shard|_move_(?:module|states)\w*|load_checkpoint\w*)\b|"
            r"fully_sharded_data_parallel\.py in __init__|deepspeed/__init__\.py in initialize",
        ),
        (
            "train",
            "backward",
            r" in (?!forward_)\w*(?<!forward_)backward\w*|(?<!forward_)backward\(|torch/autograd/",
        ),
        ("train", "reward", r"_calculate_rewards|compute_rm_score|reward_model"),
        (
            "train",
            "ref-log-prob",
            r"compute_ref_log_prob|ref_per_token_logps|reference_policy_logprobs",
        ),
        ("train", "values", r" in compute_values\b"),
        (
            "train",
            "forward",
            r" in (?:compute_loss|_compute_loss|update_policy|update_actor|update_critic|"
            r"train_one_step|train_actor|ppo_train|training_step)\b",
        ),
        (
            "train",
            "old-log-prob",
            r" in (?:compute_log_prob|compute_logprobs|get_logprobs|forward_only|"
            r"make_experience\w*|_generate_and_score_completions)\b",
        ),
        (
            "train",
            "",
            r"log_?probs?_from_logits|per_token_logps|entropy_from_logits|log_softmax|logsumexp|"
            r"log_probs|cross_entropy|_forward_micro_batch|megatron/|deepspeed/|fsdp|"
            r"verl/workers/(?:actor|critic)|transformers/trainer|\btrl/|compute_loss",
        ),
    )
)
# Stages that a step passes through on its way in; a frame within says more.
_LOGITS = re.compile(
    r"entropy_from_logits|log_?probs?_from_logits|logits|lm_head|log_?softmax|logsumexp|"
    r"cross_entropy|per_token_logps|log_probs_and_entropy|(?:compute|"
    r"calculate)_log_probs\b|vocab_parallel|functional\.py in softmax"
)
_MODEL = re.compile(
    r"transformers/(?:models|integrations|modeling)|flash_attn|peft/|torch/nn/modules|"
    r"xformers|torch/utils/checkpoint"
)
_SOFTMAX = re.compile(
    r"torch/nn/functional\.py in (?:log_)?softmax|torch/nn/functional\.py in cross_entropy"
)
_ENTROPY = re.compile(r"entropy_from_logits|compute_entropy|vocab_parallel_entropy")
# The process says it where the frames do not: names of Ray actors and of the engines' own processes.
_HEADS = (
    (
        "rollout",
        "generate",
        re.compile(r"generate|Rollout|LLMRayActor|[vV]LLM|SGLang|InferenceEngine"),
    ),
    ("train", "ref-log-prob", re.compile(r"compute_ref_log|ReferenceModel")),
    ("train", "old-log-prob", re.compile(r"compute_log_prob|get_logprobs")),
    (
        "train",
        "forward",
        re.compile(
            r"update_(?:actor|critic|policy)|Train|train|\.fit\b|ActorModel|CriticModel|Policy|"
            r"WorkerDict"
        ),
    ),
)
_PROCESSES = (
    (
        "rollout",
        re.compile(
            r"EngineCore|[vV]LLM|[vV]llm|RayWorkerWrapper|LLMRayActor|SGLang|Rollout|\b[TDPE]P\d|"
            r"InferenceEngine"
        ),
    ),
    (
        "train",
        re.compile(
            r"WorkerDict|Train|ActorModel|CriticModel|ReferenceModel|RewardModel|PolicyWorker"
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Stack:
    """side: rollout, train or None; stage: what it was doing ("" where unknown); logits: the frames handle the vocabulary.

    top: the innermost frames, normalised, by which equal tracebacks of several ranks are one.
    """

    side: str | None
    stage: str
    logits: bool
    entropy: bool
    top: tuple[str, ...]


def frames(lines: Sequence[str]) -> list[str]:
    """Outermost first: "path in name" with the frame's line of code, paths from the package on."""
    found: list[str] = []
    for line in lines:
        if (match := _FRAME.search(line) or _RICH.search(line)) is not None:
            found.append(f"{_ROOT.sub('', match['path'], count=1)} in {match['name'] or '?'}")
        elif found and line[:1] in (" ", "\t") and not set(line.strip()) <= set("^~ "):
            found[-1] += f" | {line.strip()[:160]}"
    return found


def stack(lines: Sequence[str], process: str = "") -> Stack:
    """Read a traceback. process: what the log names before its lines, "" where nothing."""
    inner = frames(lines)[::-1]
    heads = [m.group(1) for line in lines for m in _HEAD.finditer(line)][::-1]
    side: str | None = None
    stage = ""
    reached = len(inner)
    for i, frame in enumerate(inner):
        rule = next(((s, g) for s, g, pattern in _RULES if pattern.search(frame)), None)
        if rule is None or (side is not None and rule[0] != side):
            continue
        if side is None:
            side, reached = rule[0], i + 1
        if rule[1]:
            stage = rule[1]
            break
    within = inner[:reached]
    logits = any(_LOGITS.search(frame) for frame in within) and side != "rollout"
    if side is None and any(_SOFTMAX.search(frame) for frame in inner):
        side, stage, logits = "train", "old-log-prob", True
    for head in heads:
        told = next(((s, g) for s, g, pattern in _HEADS if pattern.search(head)), None)
        if told is not None and (side is None or (side == told[0] and not stage)):
            side, stage = told
            break
    if side is None:
        side = next((s for s, pattern in _PROCESSES if pattern.search(process)), None)
    if side is None and any(_MODEL.search(frame) for frame in inner):
        side = "train"
    entropy = logits and any(_ENTROPY.search(frame) for frame in within)
    return Stack(side, stage, logits, entropy, tuple(re.sub(r" \|.*", "", f) for f in inner[:3]))
