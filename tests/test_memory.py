"""Memory errors: the exact words of each library, written for these tests, and which side, stage and change they give."""

from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest

from klinic.memory import last_words
from klinic.memory.sizes import sizes
from klinic.sources import read_stream

SITE = "/opt/venv/lib/python3.11/site-packages"
ASKED = "CUDA out of memory. Tried to allocate 6.40 GiB. GPU 2 has a total capacity of 79.11 GiB of which 3.02 GiB is free. Including non-PyTorch memory, this process has 76.08 GiB memory in use. Of the allocated memory 70.55 GiB is allocated by PyTorch, and 3.90 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."


def traceback(*frames: str, end: str, prefix: str = "") -> str:
    """frames: "path in name | code", outermost first."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        where, _, code = frame.partition(" | ")
        path, _, name = where.partition(" in ")
        lines.append(f'  File "{path}", line 321, in {name}')
        if code:
            lines.append(f"    {code}")
    return "\n".join(prefix + line for line in [*lines, end])


def crash_of(text: str):
    return last_words(read_stream(io.BytesIO(text.encode()), "run.log").events)


TRL = f"{SITE}/trl/trainer/grpo_trainer.py"
TRAINER = f"{SITE}/transformers/trainer.py in training_step"
VLLM, SGL = f"{SITE}/vllm", f"{SITE}/sglang/srt"
OOM = f"torch.OutOfMemoryError: {ASKED}"
QWEN = f"{SITE}/transformers/models/qwen3/modeling_qwen3.py in forward"

CASES = {
    # TRL: one training step samples, recomputes log-probs and updates; only inner frames tell which.
    "trl-update-logits": (traceback(TRAINER, f"{TRL} in compute_loss", f"{TRL} in _get_per_token_logps_and_entropies | logits = model(**model_inputs).logits", f"{SITE}/trl/trainer/utils.py in selective_log_softmax", end=OOM), "train", "forward"),
    "trl-old-log-probs": (traceback(TRAINER, f"{TRL} in _prepare_inputs", f"{TRL} in _generate_and_score_completions", f"{TRL} in _get_per_token_logps_and_entropies", QWEN, end=OOM), "train", "old-log-prob"),
    "trl-samples-itself": (traceback(TRAINER, f"{TRL} in _generate_and_score_completions", f"{SITE}/transformers/generation/utils.py in generate", f"{SITE}/transformers/generation/utils.py in _sample", QWEN, f"{SITE}/torch/nn/modules/linear.py in forward", end=OOM), "rollout", "generate"),
    "trl-colocated-vllm": (traceback(TRAINER, f"{TRL} in _generate_single_turn | self.llm.generate(prompts)", f"{VLLM}/entrypoints/llm.py in generate", f"{VLLM}/v1/worker/gpu_model_runner.py in execute_model", f"{VLLM}/model_executor/models/qwen3.py in forward", f"{SITE}/torch/nn/functional.py in linear", end=OOM), "rollout", "generate"),
    "trl-backward": (traceback(TRAINER, f"{SITE}/accelerate/accelerator.py in backward | loss.backward(**kwargs)", f"{SITE}/torch/_tensor.py in backward", f"{SITE}/torch/autograd/graph.py in _engine_run_backward", end=OOM), "train", "backward"),
    "checkpointed-recompute": (traceback(f"{SITE}/accelerate/accelerator.py in backward", f"{SITE}/torch/autograd/__init__.py in backward", f"{SITE}/torch/utils/checkpoint.py in unpack_hook", QWEN, end=OOM), "train", "backward"),
    "adam": (traceback(TRAINER, f"{SITE}/accelerate/optimizer.py in step", f"{SITE}/torch/optim/adamw.py in _init_group", end=OOM), "train", "optimiser"),
    "deepspeed-step": (traceback(f"{SITE}/deepspeed/runtime/engine.py in step", f"{SITE}/deepspeed/runtime/engine.py in _take_model_step", f"{SITE}/deepspeed/runtime/zero/stage3.py in step", end=OOM), "train", "optimiser"),
    "load": (traceback("/w/train.py in <module>", f"{SITE}/transformers/modeling_utils.py in from_pretrained", f"{SITE}/transformers/modeling_utils.py in _load_pretrained_model", end=OOM), "train", "load"),
    "verl-ref": ("ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.ref_compute_ref_log_prob() (pid=71, ip=10.1.1.2)\n" + "\n".join(traceback("/r/verl/workers/fsdp_workers.py in compute_ref_log_prob", "/r/verl/workers/actor/dp_actor.py in _forward_micro_batch", QWEN, end=OOM).split("\n")[1:]), "train", "ref-log-prob"),
    "verl-header-only": (f"ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() (pid=9, ip=10.1.1.2)\n  File \"{SITE}/torch/nn/modules/module.py\", line 1739, in _wrapped_call_impl\n{OOM}", "train", "forward"),
    "megatron": (traceback("/r/Megatron-LM/megatron/core/pipeline_parallel/schedules.py in forward_backward_no_pipelining", "/r/Megatron-LM/megatron/core/pipeline_parallel/schedules.py in backward_step", end=OOM), "train", "backward"),
    "weights-to-sampler": (traceback("/r/verl/workers/fsdp_workers.py in rollout_mode", "/r/verl/workers/sharding_manager/fsdp_vllm.py in __enter__", f"{SITE}/torch/distributed/tensor/_api.py in full_tensor", end=OOM), "train", "weight-sync"),
    "weights-in-sampler": (traceback(f"{SGL}/managers/scheduler.py in event_loop_overlap", f"{SGL}/model_executor/model_runner.py in update_weights_from_tensor", end=OOM), "rollout", "weight-sync"),
    "wake-in-trainers-worker": (traceback("/r/verl/workers/fsdp_workers.py in generate_sequences", f"{VLLM}/entrypoints/llm.py in wake_up", f"{VLLM}/device_allocator/cumem.py in create_and_map | python_create_and_map(*allocation_handle)", end="RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62"), "rollout", "wake"),
    "vllm-no-blocks": (traceback(f"{VLLM}/v1/engine/core.py in run_engine_core", f"{VLLM}/v1/core/kv_cache_utils.py in check_enough_kv_cache_memory", end="ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", prefix="(EngineCore_DP0 pid=812) ERROR 03-02 11:40:11 [core.py:708] "), "rollout", "kv-cache"),
    "vllm-taken": ("ValueError: Free memory on device (20.10/79.25 GiB) on startup is less than desired GPU memory utilization (0.9, 71.33 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.", "rollout", "kv-cache"),
    "vllm-too-long": ("ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV cache is needed, which is larger than the available KV cache memory (2.31 GiB). Based on the available memory, the estimated maximum model length is 18912. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.", "rollout", "kv-cache"),
    "vllm-v0-too-long": ("ValueError: The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.", "rollout", "kv-cache"),
    "vllm-warm-up": ("RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.", "rollout", "warm-up"),
    "sglang-capture": ("[2026-03-02 10:00:01 TP1] Scheduler hit an exception: " + traceback(f"{SGL}/managers/scheduler.py in run_scheduler_process", f"{SGL}/model_executor/cuda_graph_runner.py in __init__", end="Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 1 has a total capacity of 79.11 GiB"), "rollout", "graph-capture"),
    "sglang-decode": (traceback(f"{SGL}/managers/scheduler.py in event_loop_normal", f"{SGL}/managers/scheduler.py in run_batch", f"{SGL}/layers/logits_processor.py in forward", end=OOM, prefix="[2026-03-02 10:00:01 TP0] "), "rollout", "generate"),
    "sglang-resume": ("[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/core.cpp func=resume line=87", "rollout", "wake"),
    "old-torch": (traceback(f"{SITE}/deepspeed/runtime/engine.py in forward", "/w/loss.py in logprobs_from_logits", end="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB (GPU 3; 39.39 GiB total capacity; 33.10 GiB already allocated; 1.01 GiB free; 37.20 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."), "train", ""),
    "npu": (traceback("/r/verl/workers/actor/dp_actor.py in update_policy | loss.backward()", f"{SITE}/torch/autograd/__init__.py in backward", end="RuntimeError: NPU out of memory. Tried to allocate 3.15 GiB (NPU 5; 60.96 GiB total capacity; 54.44 GiB already allocated; 57.6 GiB current active; 1.61 GiB free; 57.85 GiB reserved in total by PyTorch)"), "train", "backward"),
    "cublas": (traceback(f"{TRL} in compute_loss", QWEN, end="RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "train", "forward"),
    "ray-node": ("(raylet, ip=10.1.1.3) [2026-03-02 10:11:12,001 E 200 200] (raylet) node_manager.cc:3064: 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: ab, IP: 10.1.1.3) over the last time period.", "host", "node"),
    "kernel": ("[88231.1] Out of memory: Killed process 4411 (python3) total-vm:412GB, anon-rss:301GB", "host", "process"),
    "cgroup": ("[88231.1] Memory cgroup out of memory: Killed process 4411 (ray::WorkerDict) total-vm:91234567kB", "host", "process"),
    "slurm": ("slurmstepd: error: Detected 1 oom_kill event in StepId=7712.0. Some of the step tasks have been OOM Killed.", "host", "cgroup"),
    "kubernetes": ("    Last State:     Terminated  Reason: OOMKilled  Exit Code: 137", "host", "cgroup"),
    "numpy": (traceback("/w/data.py in collate", end="numpy.core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array with shape (40000, 40000) and data type float64"), "host", "process"),
    "cpu-alloc": (traceback(f"{SITE}/torch/storage.py in _share_memory", end="RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 25769803776 bytes. Error code 12 (Cannot allocate memory)"), "host", "process"),
    "shared-memory": ("RuntimeError: DataLoader worker (pid 771) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.", "host", "shared-memory"),
    "rich": ("╭──────── Traceback (most recent call last) ────────╮\n│ /w/train.py:88 in <module>                         │\n" + f"│ {TRL}:1402 in compute_loss │\n│ {SITE}/torch/nn/functional.py:2380 in log_softmax │\n╰───────────────────────────────╯\n{OOM}", "train", "forward"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_side_and_stage(name):
    text, side, stage = CASES[name]
    crash = crash_of(text)
    assert crash is not None and (crash.kind, crash.side, crash.stage) == ("memory", side, stage), (
        crash
    )


OTHERS = {
    "collective-timeout": "[rank3]:[E ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91, OpType=_ALLGATHER_BASE, NumelIn=1, NumelOut=8, Timeout(ms)=600000) ran for 600032 milliseconds before timing out.",
    "device-fault": traceback(f"{TRL} in compute_loss", end="RuntimeError: CUDA error: an illegal memory access was encountered"),
    "disk-full": traceback(f"{SITE}/transformers/trainer.py in _save_checkpoint", end="OSError: [Errno 28] No space left on device: 'checkpoint-200/optimizer.pt'"),
    "time-limit": "slurmstepd: error: *** JOB 991 ON n12 CANCELLED AT 2026-03-02T10:00:00 DUE TO TIME LIMIT ***",
    "worker-lost": "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    "segfault": "Fatal Python error: Segmentation fault",
    "error": traceback("/w/reward.py in score", end="KeyError: 'ground_truth'"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_memory_error_is_said_to_be_what_it_is(kind):
    crash = crash_of(OTHERS[kind])
    assert crash is not None and crash.kind == kind and not crash.by_memory


QUIET = (
    "The laptop ran out of memory, and the man was killed by a falling tree.",
    "step:3 - perf/max_memory_allocated_gb:71.2 - actor/entropy:0.5 - critic/score/mean:0.4",
    "(raylet) 0 Workers (tasks / actors) killed due to memory pressure (OOM), 2 Workers crashed due to other reasons",
    "INFO 03-02 [pynccl.py:63] vLLM is using nccl==2.20.5",
    "Sleep mode freed 35.43 GiB memory, 1.19 GiB memory is still in use.",
    "INFO 03-02 worker.py:267] model weights take 3.35GiB; the rest of the memory reserved for KV Cache is 14.98GiB.",
)


@pytest.mark.parametrize("line", QUIET)
def test_ordinary_lines_are_no_crash(line):
    crash = crash_of(line + "\nmore\n")
    assert crash is None or not crash.by_memory


def test_interleaved_ranks_are_one_error_and_processes_stay_apart():
    train = traceback(TRAINER, f"{TRL} in compute_loss", end=OOM).split("\n")
    sample = traceback(
        f"{VLLM}/v1/worker/gpu_worker.py in execute_model", end="RuntimeError: cancelled"
    ).split("\n")
    mixed = [line for trio in zip(train, train, [*sample, ""], strict=False) for line in (f"[rank0]: {trio[0]}", f"[rank5]: {trio[1]}", f"(VllmWorker pid=3) {trio[2]}")]  # fmt: skip
    crash = crash_of("\n".join(mixed))
    assert crash.side == "train" and set(crash.processes) == {"rank0", "rank5"}


def test_a_memory_error_explains_the_other_deaths():
    text = "\n".join(
        (OTHERS["collective-timeout"], CASES["trl-backward"][0], "exitcode  : -9 (pid: 12)")
    )
    assert crash_of(text).stage == "backward"
    assert (
        crash_of(
            "  exitcode  : -9 (pid: 14750)\n  traceback : Signal 9 (SIGKILL) received by PID 14750"
        ).kind
        == "killed"
    )
    assert (
        crash_of(OTHERS["collective-timeout"] + "\nexitcode  : -9 (pid: 12)").kind
        == "collective-timeout"
    )


def test_sizes():
    found = sizes(ASKED)
    assert (found.tried, found.total, found.free, found.mine) == (6.40, 79.11, 3.02, 76.08)
    assert found.unused == 3.90 and not found.fragmented
    assert sizes(ASKED.replace("3.90", "9.90")).fragmented
    old = sizes(CASES["old-torch"][0])
    assert old.tried == 2.32 and old.unused == pytest.approx(4.1) and old.fragmented
    assert sizes(CASES["vllm-too-long"][0]).fits == 18912


def oom(tmp_path, text, *options):
    log = tmp_path / "job.log"
    log.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "klinic", "oom", str(log), *options], capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def answer(tmp_path, text, *options):
    return json.loads(oom(tmp_path, text, "--format", "json", *options).stdout)


def test_the_first_flag_is_the_trainers_own(tmp_path):
    config = "GRPOConfig(per_device_train_batch_size=4, max_prompt_length=512, max_completion_length=1536, vllm_gpu_memory_utilization=0.4)\n"
    first = lambda name: answer(tmp_path, config + CASES[name][0])["first_action"]  # noqa: E731
    assert first("trl-update-logits")["command"] == "--per_device_train_batch_size 2"
    assert first("trl-colocated-vllm")["command"] == "--vllm_max_model_length 2048"
    assert first("wake-in-trainers-worker")["command"] == "--vllm_gpu_memory_utilization 0.32"
    assert answer(tmp_path, CASES["verl-ref"][0])["first_action"]["flag"].startswith(
        "actor_rollout_ref.rollout.log_prob"
    )
    assert first("vllm-no-blocks")["command"] == "--vllm_gpu_memory_utilization 0.48"
    assert first("vllm-too-long")["command"] == "--vllm_max_model_length 2048"
    assert first("vllm-taken")["command"] == "--vllm_gpu_memory_utilization 0.24"
    assert first("ray-node")["kind"] == "inspect"


def test_the_logits_are_named_where_the_sizes_give_them(tmp_path):
    # 4 x 2048 tokens x 151936 words x 4 bytes = 4.64 GiB
    config = "GRPOConfig(per_device_train_batch_size=4, max_prompt_length=512, max_completion_length=1536)\n"
    text = config + traceback(f"{TRL} in compute_loss", QWEN, end=OOM.replace("6.40", "4.64"))
    said = answer(tmp_path, text)["findings"][0]["evidence"]
    assert "out-of-memory.tensor-logits-exact" in [e["sentence"] for e in said]


def test_command_line(tmp_path):
    done = oom(tmp_path, CASES["trl-backward"][0])
    assert done.returncode == 1 and "the trainer ran out of memory" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 80
    assert "训练侧显存不足" in oom(tmp_path, CASES["trl-backward"][0], "--lang", "zh").stdout
    other = oom(tmp_path, OTHERS["collective-timeout"])
    assert other.returncode == 3 and "no memory error" in other.stdout and "rank3" in other.stdout
    for form in ("markdown", "github"):
        assert "out-of-memory" in oom(tmp_path, CASES["ray-node"][0], "--format", form).stdout
    piped = subprocess.run(
        [sys.executable, "-m", "klinic", "oom", "-"], input=OOM, capture_output=True, text=True
    )
    assert piped.returncode == 1
    missing = subprocess.run(
        [sys.executable, "-m", "klinic", "oom", str(tmp_path / "none")], capture_output=True
    )
    assert missing.returncode == 2


def run_of(steps, lengths, crash_after):
    rows = []
    for step in range(1, steps + 1):
        rows.append(f"step:{step} - critic/score/mean:0.5 - actor/entropy:1.1 - response_length/mean:300.0 - response_length/max:{lengths(step)}")  # fmt: skip
        if step == crash_after:
            rows += ["(WorkerDict pid=9) " + line for line in CASES["npu"][0].split("\n")]
    return "\n".join(rows)


def test_the_longest_response_before_it_and_a_run_that_lived_on(tmp_path):
    from klinic.diagnose import diagnose

    log = tmp_path / "job.log"
    log.write_text(run_of(30, lambda step: 800 if step < 26 else 1900, 30))
    found = diagnose(log).main
    assert found.failure == "out-of-memory" and found.severity == "stop" and found.onset.step == 30
    grew = next(e for e in found.evidence if e.sentence == "longest-grew")
    assert (grew.before, grew.after) == (800, 1900)
    (tmp_path / "global_step_20" / "actor" / "model").mkdir(parents=True)
    (tmp_path / "global_step_20" / "actor" / "model" / "x").write_text("1")
    log.write_text(run_of(30, lambda step: 800, 12))
    lived = diagnose(log)
    finding = next(f for f in lived.findings if f.failure == "out-of-memory")
    assert finding.severity == "caution"
    sentences = [e.sentence for e in finding.evidence]
    assert "went-on" in sentences and "longest-grew" not in sentences and "saved" in sentences


def test_shared_memory_cases(shared):
    from klinic.diagnose import diagnose

    for case in json.loads((shared / "bench" / "dev.json").read_text()):
        if case.get("side"):
            found = diagnose(shared / case["path"]).main
            assert found.failure == "out-of-memory" and found.side == case["side"], case["id"]
