"""How a run died, from the tracebacks and last words of all its processes: the one that tells most, and who says it too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from klinic.memory.sizes import Sizes, sizes
from klinic.memory.stack import Stack, stack
from klinic.run import Event
from klinic.sources.console.signs import sign_of

# What a message means: kind, side, stage. Kinds other than memory are no memory error, however much they look like one.
_MEANS: dict[str, tuple[str, str | None, str]] = {
    "kernel-kill": ("memory", "host", "process"),
    "scheduler-kill": ("memory", "host", "cgroup"),
    "ray-node": ("memory", "host", "node"),
    "object-store": ("memory", "host", "object-store"),
    "host-alloc": ("memory", "host", "process"),
    "shared-memory": ("memory", "host", "shared-memory"),
    "loader-killed": ("memory", "host", "loader"),
    "pool-no-blocks": ("memory", "rollout", "kv-cache"),
    "pool-no-free": ("memory", "rollout", "kv-cache"),
    "pool-too-short": ("memory", "rollout", "kv-cache"),
    "pool-no-room": ("memory", "rollout", "kv-cache"),
    "warm-up": ("memory", "rollout", "warm-up"),
    "graph-capture": ("memory", "rollout", "graph-capture"),
    "pool-full": ("memory", "rollout", "generate"),
    "pool-wake": ("memory", "rollout", "wake"),
    "pool-wake-late": ("suspect", "rollout", "wake"),
    "sync-no-memory": ("memory", "rollout", "weight-sync"),
    "device-alloc": ("memory", None, ""),
    "device-alloc-failed": ("memory", None, ""),
    "killed": ("killed", "host", "killed"),
    "device-fault": ("device-fault", None, ""),
    "collective-timeout": ("collective-timeout", None, ""),
    "collective-error": ("collective-error", None, ""),
    "disk-full": ("disk-full", None, ""),
    "segfault": ("segfault", None, ""),
    "time-limit": ("time-limit", None, ""),
    "worker-lost": ("worker-lost", None, ""),
    "engine-died": ("worker-lost", None, ""),
}
# Who is believed first. A memory error explains every other death: the other ranks time out, the workers are lost.
_TELLS = (
    "memory",
    "time-limit",
    "disk-full",
    "killed",
    "device-fault",
    "segfault",
    "collective-error",
    "collective-timeout",
    "suspect",
    "error",
    "worker-lost",
)
_PARTS = ("During handling of the above exception", "The above exception was the direct cause")
NOTHING, NO_FRAMES = Sizes(), Stack(None, "", False, False, ())
KILLED_AT_ONCE = ("collective-error", "collective-timeout")


@dataclass(frozen=True, slots=True)
class Crash:
    """One death. kind: memory, or what else it was. side: rollout, train, host, None. stage: what it was doing.

    message: the line that says it. processes: all that say the same, as the log names them. step: last logged before.
    """

    kind: str
    side: str | None
    stage: str
    sign: str
    message: str
    at: str
    step: int | None
    sizes: Sizes = NOTHING
    stack: Stack = NO_FRAMES
    processes: tuple[str, ...] = ()

    @property
    def by_memory(self) -> bool:
        """Memory, or what memory most often does: a process killed from outside, a sampler that cannot come back."""
        return self.kind in ("memory", "killed", "suspect")


def last_words(events: Iterable[Event]) -> Crash | None:
    """The death that tells most: memory before all else, then the first that was said. None where nothing died."""
    found = [
        crash
        for event in events
        if event.kind in ("traceback", "crash") and (crash := _read(event)) is not None
    ]
    if not found:
        return None
    kinds = sorted({crash.kind for crash in found}, key=_TELLS.index)
    # A launcher that ends the other ranks after a dead collective kills them with signal 9: no sign of host memory.
    if kinds[0] == "killed" and (first := _place(found, KILLED_AT_ONCE)) is not None:
        if _line(first.at) < min(_line(c.at) for c in found if c.kind == "killed"):
            kinds[0] = first.kind
    told = sorted((c for c in found if c.kind == kinds[0]), key=lambda c: _line(c.at))
    newest = max(-1 if c.step is None else c.step for c in told)  # earlier ones were lived through
    told = [c for c in told if (-1 if c.step is None else c.step) == newest]
    if kinds[0] == "error":  # any other error: the last one ended the run
        told.reverse()
    first = next((c for c in told if c.side is not None), told[0])
    alike = [
        c
        for c in told
        if (c.sign, c.side, c.stack.top) == (first.sign, first.side, first.stack.top)
    ]
    sized = next((c.sizes for c in alike if c.sizes.tried or c.sizes.total), first.sizes)
    names = dict.fromkeys(name for crash in alike for name in crash.processes)
    return replace(first, processes=tuple(names), sizes=sized)


def _place(found: list[Crash], kinds: tuple[str, ...]) -> Crash | None:
    return min((c for c in found if c.kind in kinds), key=lambda c: _line(c.at), default=None)


def _line(at: str) -> int:
    number = at.rpartition(":")[2]
    return int(number) if number.isdigit() else 0


def _read(event: Event) -> Crash | None:
    lines, process = [], ""
    for line in event.lines:
        name, tab, text = line.partition("\t")
        if tab and (not name or not name[:1].isspace()):
            process = process or name
            line = text
        lines.append(line)
    named = (process,) if process else ()
    part = _told(lines)
    signs = [(sign, line) for line in part if (sign := sign_of(line)) is not None]
    # The message that says most stands last; Ray's header only repeats the class of the error.
    sign, message = min(
        reversed(signs),
        key=lambda s: _TELLS.index(_MEANS[s[0]][0]) * 2 + ("RayTaskError" in s[1]),
        default=("", ""),
    )
    if not sign:
        if event.kind != "traceback":
            return None
        message = next(
            (line for line in reversed(lines) if line.strip() and line[:1] not in " \t│"), ""
        )
        return Crash(
            "error", None, "", "", message.strip()[:300], event.at, event.step, processes=named
        )
    kind, side, stage = _MEANS[sign]
    shown = stack(part, process)
    if side is None and kind == "memory":
        side, stage = shown.side, shown.stage
    text = message.strip()
    if sign == "ray-node":  # Ray says the figures on the line after
        text = next((line.strip() for line in part if "Memory on the node" in line), text)
    said = "\n".join(part)
    return Crash(
        kind, side, stage, sign, text[:300], event.at, event.step, sizes(said), shown, named
    )


def _told(lines: list[str]) -> list[str]:
    """Of a chain of exceptions the first that names memory, else all of it."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.strip().startswith(_PARTS):
            parts.append([])
        parts[-1].append(line)
    for part in parts:
        if any((sign := sign_of(line)) and _MEANS[sign][0] == "memory" for line in part):
            return part
    return lines
