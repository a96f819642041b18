"""What a dying process says: one name for each message of the libraries, however it is prefixed.

Only what the message is stands here; what it means for the run is judged in :mod:`klinic.memory`.
Sources of the wordings: trainers/native.md section 11 and the reports it cites; vLLM, SGLang, Ray, PyTorch, Slurm and
kernel messages as their own trackers quote them.
"""

from __future__ import annotations

import re

# name, words of which one must occur (lower case; a cheap first look), pattern. The first that fits names the message:
# messages of the host stand before those of the device, since "Out of memory: Killed process" is the kernel's.
_SIGNS: tuple[tuple[str, str, str], ...] = (
    (
        "kernel-kill",
        "oom|kill",
        r"Out of memory: Kill(ed)? process|oom-kill:constraint|Memory cgroup out of memory|"
        r"invoked oom-killer|oom_reaper: reaped",
    ),
    (
        "scheduler-kill",
        "oom|memory limit",
        r"oom[_-]kill event|OOM[ _-]?Killed|[Ee]xceeded (\w+ )?memory limit|"
        r"memory limit.*being killed",
    ),
    (
        "ray-node",
        "memory",
        r"running low on memory|Memory on the node|"
        r"\b[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure|"
        r"exceeds the memory usage threshold|ray\.exceptions\.OutOfMemoryError",
    ),
    (
        "object-store",
        "object store|objectstore",
        r"ObjectStoreFullError|object store (memory )?is full",
    ),
    (
        "host-alloc",
        "alloc|memoryerror",
        r"DefaultCPUAllocator: (can't allocate|not enough)|Cannot allocate memory|\bMemoryError\b|"
        r"\b_?Ar(ray|row)MemoryError|std::bad_alloc|Unable to allocate .* for an array",
    ),
    (
        "shared-memory",
        "shared mem|bus error",
        r"out of shared memory|insufficient shared memory|unable to \w+ shared memory|killed by signal: Bus error",
    ),
    ("loader-killed", "dataloader worker", r"DataLoader worker \(pid.*killed by signal: Killed"),
    ("pool-no-blocks", "cache blocks", r"No available memory for the cache blocks"),
    ("pool-no-free", "free memory on device", r"Free memory on device .*less than desired"),
    (
        "pool-too-short",
        "kv cache",
        r"larger than the (maximum number of tokens that can be stored in KV cache|"
        r"available KV cache memory)",
    ),
    (
        "pool-no-room",
        "not enough memory",
        r"Not enough memory\. Please try|Not enough memory to allocate (the )?KV cache",
    ),
    ("warm-up", "warming up", r"out of memory occurred when warming up sampler"),
    ("graph-capture", "capture", r"[Cc]apture cuda graph failed.*memory"),
    ("pool-full", "out of memory. try", r"(Prefill|Decode) out of memory\. Try to lower"),
    (
        "pool-wake",
        "out of memory",
        r"out of memory.*cumem_allocator|torch_memory_saver.*out of memory",
    ),
    ("pool-wake-late", "resume_memory_occupation", r"resume_memory_occupation timed out"),
    ("sync-no-memory", "parameter online", r"Failed to update parameter online.*(memory|OOM)"),
    (
        "device-alloc",
        "out of memory|outofmemory|oom when",
        r"(CUDA|HIP|NPU|XPU|MPS|MUSA|GPU|CUresult|Cuda failure|driver)\b.*out of memory|"
        r"OutOfMemoryError|RESOURCE_EXHAUSTED: Out of memory|OOM when allocating",
    ),
    ("device-alloc-failed", "alloc", r"STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation"),
    (
        "device-fault",
        "illegal|assert|launch failure|misaligned|ecc|off the bus",
        r"illegal memory access|device-side assert triggered|unspecified launch failure|"
        r"misaligned address|uncorrectable ECC|fallen off the bus",
    ),
    (
        "collective-timeout",
        "watchdog|timeout",
        r"Watchdog caught collective operation timeout|[Ww]atchdog.*(timed? ?out|timeout)|"
        r"ProcessGroup\w+.*[Tt]imeout",
    ),
    (
        "collective-error",
        "nccl|dist|gloo",
        r"nccl(System|Internal|Remote|UnhandledCuda)Error|NCCL (error|failure)|Dist(Backend|"
        r"Network|Store)Error|gloo.*(Timed out|by peer)",
    ),
    (
        "disk-full",
        "no space|quota|outofdisk",
        r"No space left on device|Disk quota exceeded|OutOfDiskError",
    ),
    (
        "worker-lost",
        "died|worker|actor",
        r"potential root causes|worker died unexpectedly|ActorDiedError|WorkerCrashedError|RayActorError|ActorUnavailableError",
    ),
    (
        "segfault",
        "segmentation|sigsegv|exitcode",
        r"Segmentation fault|SIGSEGV|exit ?code\s*[:=]?\s*-11\b",
    ),
    (
        "killed",
        "kill|exit|137",
        r"\bSIGKILL\b|exit ?code\s*[:=]?\s*-9\b|[Ss]ignal 9\b|^Killed\s*$|"
        r": line \d+:\s+\d+ Killed\s|exit(ed with)? (code|status)\s*[:=]?\s*137\b|"
        r"killed by signal: Killed",
    ),
    ("time-limit", "due to|preempt", r"DUE TO (TIME LIMIT|PREEMPTION)|CANCELLED AT .* DUE TO"),
    (
        "engine-died",
        "engine|scheduler hit",
        r"EngineDeadError|EngineCore (encountered|died|failed)|"
        r"Engine core initialization failed|Engine process failed to start|"
        r"Scheduler hit an exception",
    ),
)
LONG = 4000  # characters of a line that are looked at; answers of a model can be longer and say nothing of the kind


_TABLE = tuple((name, tuple(words.split("|")), pattern) for name, words, pattern in _SIGNS)
WORDS = tuple(dict.fromkeys(word for _, words, _ in _TABLE for word in words))


def sign_of(text: str) -> str | None:
    """The name of the message in a line, None where it is no such message."""
    low = text[:LONG].lower()
    for name, words, pattern in _TABLE:
        if any(word in low for word in words) and re.search(pattern, text[:LONG]):
            return name
    return None
