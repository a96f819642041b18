"""Which tensor was too large, where the size and the frames give it."""

from __future__ import annotations

from dataclasses import dataclass

from klinic.memory.sizes import Sizes
from klinic.memory.stack import Stack

# Vocabularies of the families people train, with what their embedding is padded to; from the models' config.json.
VOCABULARIES = (151936, 152064, 151665, 151669, 248320, 128256, 128000, 129280, 32000, 32768, 131072, 256000, 262144, 201088, 100352)  # fmt: skip
WIDTHS = (
    4,
    2,
)  # bytes a value: log-softmax and entropy are taken in float32, the logits themselves in bfloat16
SAME = 0.005  # a size is printed with two decimals of a GiB or MiB
BLOCK = (
    2 * 2**20
)  # the allocator rounds large requests up to 2 MiB (CUDACachingAllocator.cpp, kRoundLarge)


@dataclass(frozen=True, slots=True)
class Tensor:
    """name: logits, optimiser, kv-cache, gradients, weights or activations. tokens, vocabulary, width: of logits only."""

    name: str
    tokens: int | None = None
    vocabulary: int | None = None
    width: int | None = None
    exact: bool = False


def guilty(
    stack: Stack, found: Sizes, tokens: int | None = None, vocabulary: int | None = None
) -> Tensor | None:
    """The tensor, None where nothing tells. tokens: longest sequence x micro batch, vocabulary: from the configuration."""
    if stack.side == "train" and found.tried:
        for width in WIDTHS:
            for size in (vocabulary,) if vocabulary else VOCABULARIES:
                if tokens and abs(found.tried * 2**30 / (tokens * size * width) - 1) < SAME:
                    return Tensor("logits", tokens, size, width, True)
    if stack.logits and found.tried:
        size = vocabulary or VOCABULARIES[0]
        return Tensor("logits", round(found.tried * 2**30 / (size * 4)), size, 4)
    if stack.logits:
        return Tensor("logits")
    if stack.stage == "optimiser":
        return Tensor("optimiser")
    if stack.stage in ("wake", "kv-cache"):
        return Tensor("kv-cache")
    if stack.stage in ("load", "weight-sync", "onload", "save"):
        return Tensor("weights")
    if stack.stage == "backward":
        return Tensor("gradients")
    if stack.side == "train" and stack.stage:
        return Tensor("activations")
    return None
