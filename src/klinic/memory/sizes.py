"""The sizes in a memory error, whatever library wrote it, in GiB."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GIB = {"": 1 / 2**30, "k": 2**-20, "m": 2**-10, "g": 1.0, "t": 2.0**10}
_SIZE = r"(-?[\d.]+) ?([KMGT]?)i?B"
# PyTorch 2.2 and later; then the wording before it (c10/cuda/CUDACachingAllocator.cpp); NPU and HIP copy both.
_PATTERNS: dict[str, tuple[str, ...]] = {
    "tried": (rf"Tried to allocate {_SIZE}", rf"tried to allocate {_SIZE}", r"allocate (\d+) (b)ytes"),
    "total": (
        rf"total capacity of {_SIZE}",
        rf"{_SIZE} total capacity",
        rf"Free memory on device \S* ?\([\d.]+/{_SIZE}\)",
        rf"was [\d.]+GB / {_SIZE} ",
    ),
    "free": (
        rf"of which {_SIZE} is free",
        rf"{_SIZE} free;",
        r"Free memory on device \S* ?\(([\d.]+)/[\d.]+ ([G])iB\)",
    ),
    "mine": (rf"this process has {_SIZE} memory in use",),
    "allocated": (rf"{_SIZE} is allocated by PyTorch", rf"{_SIZE} already allocated"),
    "unused": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "reserved": (rf"{_SIZE} reserved in total by PyTorch",),
    "wanted": (rf"{_SIZE} KV cache is needed", rf"memory utilization \([\d.]+, {_SIZE}\)"),
    "pool": (rf"available KV cache memory \({_SIZE}\)",),
    "used": (rf"was {_SIZE} / [\d.]+GB ",),
}  # fmt: skip
_OTHERS = re.compile(rf"Process \d+ has {_SIZE} memory in use")
_FITS = (
    re.compile(r"estimated maximum model length is (\d+)"),
    re.compile(r"stored in KV cache \((\d+)\)"),
)


@dataclass(frozen=True, slots=True)
class Sizes:
    """GiB, None where the message does not say. unused: reserved by the allocator but in no tensor.

    others: what other processes hold of the same card. fits: the longest sequence the sampler's pool can hold, tokens.
    """

    tried: float | None = None
    total: float | None = None
    free: float | None = None
    mine: float | None = None
    allocated: float | None = None
    unused: float | None = None
    wanted: float | None = None
    pool: float | None = None
    used: float | None = None
    others: float | None = None
    fits: int | None = None

    @property
    def fragmented(self) -> bool:
        """The allocator holds more unused memory than it was asked for: enough of it, but in pieces."""
        return self.unused is not None and self.tried is not None and self.unused >= self.tried

    @property
    def crowded(self) -> bool:
        """Other processes on the card hold a fifth of it or more: without them it would have fitted."""
        return (
            self.others is not None
            and self.total is not None
            and self.tried is not None
            and self.others >= max(0.2 * self.total, self.tried - (self.free or 0))
        )


def sizes(text: str) -> Sizes:
    """Read every size a message states."""
    found: dict[str, float] = {}
    for name, patterns in _PATTERNS.items():
        for pattern in patterns:
            if (match := re.search(pattern, text)) is not None:
                unit = match.group(2).lower()
                found[name] = float(match.group(1)) * _GIB["" if unit == "b" else unit]
                break
    reserved = found.pop("reserved", None)
    if reserved is not None and "allocated" in found:
        found.setdefault("unused", max(0.0, reserved - found["allocated"]))
    others = [float(m.group(1)) * _GIB[m.group(2).lower()] for m in _OTHERS.finditer(text)]
    # Older messages name the crashing process itself so, too: then nothing says "this process".
    if others and "mine" not in found and "total" in found and len(others) == 1:
        found["mine"] = others.pop()
    fits = next((int(m.group(1)) for p in _FITS if (m := p.search(text)) is not None), None)
    return Sizes(**found, others=sum(others) if others else None, fits=fits)


def written(gib: float) -> str:
    """A size as people write it: 13.9 GiB, 512 MiB."""
    if abs(gib) >= 1:
        return f"{gib:.3g} GiB" if gib < 1000 else f"{gib:.0f} GiB"
    return f"{gib * 1024:.3g} MiB"
