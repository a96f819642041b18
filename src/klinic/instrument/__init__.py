"""The metrics of RL post-training, computed right where they are born: in the training loop, from its own tensors.

The arithmetic takes NumPy arrays and torch tensors alike, and is what klinic's own lab logs. Importing it imports neither torch nor
anything that reads or judges runs; only ``logprobs_and_entropy`` needs torch, and loads it when it is asked for.

    from klinic.instrument import Step, logprobs_and_entropy

Shapes: B sequences, L tokens, V vocabulary, G responses to one prompt. Every function takes the mask of the response tokens; padding
may be on either side. docs/instrument.md has the definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from klinic.instrument.control import EntropyTarget, ExponentialKL, ProportionalKL
from klinic.instrument.critic import (
    at_last_token,
    explained_variance,
    gae,
    returns_against_values,
)
from klinic.instrument.entropy import by_position, by_relative_position, entropy_of, log_softmax
from klinic.instrument.groups import (
    all_right_share,
    all_wrong_share,
    group_advantages,
    zero_std_share,
)
from klinic.instrument.kl import k1, k2, k3, kl_seq_sum, kl_token_mean, log_ratio
from klinic.instrument.masked import (
    correlation,
    masked_mean,
    masked_quantiles,
    masked_std,
    masked_sum,
    whiten,
)
from klinic.instrument.ratios import (
    Clipping,
    clipping,
    ess_fraction,
    outside_band,
    ratio,
    ratio_geo_mean,
    ratio_mean,
)
from klinic.instrument.recorder import Recorder
from klinic.instrument.responses import at_cap, ended, lengths, unique_share
from klinic.instrument.slices import length_buckets
from klinic.instrument.step import Step
from klinic.instrument.tally import Tally

if TYPE_CHECKING:
    from klinic.instrument.logits import logprobs_and_entropy

__all__ = [
    "Clipping",
    "EntropyTarget",
    "ExponentialKL",
    "ProportionalKL",
    "Recorder",
    "Step",
    "Tally",
    "all_right_share",
    "all_wrong_share",
    "at_cap",
    "at_last_token",
    "by_position",
    "by_relative_position",
    "clipping",
    "correlation",
    "ended",
    "entropy_of",
    "ess_fraction",
    "explained_variance",
    "gae",
    "group_advantages",
    "k1",
    "k2",
    "k3",
    "kl_seq_sum",
    "kl_token_mean",
    "length_buckets",
    "lengths",
    "log_ratio",
    "log_softmax",
    "logprobs_and_entropy",
    "masked_mean",
    "masked_quantiles",
    "masked_std",
    "masked_sum",
    "outside_band",
    "ratio",
    "ratio_geo_mean",
    "ratio_mean",
    "returns_against_values",
    "unique_share",
    "whiten",
    "zero_std_share",
]


def __getattr__(name: str) -> Any:
    if name != "logprobs_and_entropy":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from klinic.instrument.logits import logprobs_and_entropy
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from klinic.errors import MissingExtra

        raise MissingExtra(
            "logprobs_and_entropy needs torch", hint="pip install 'klinic[torch]'"
        ) from error
    return logprobs_and_entropy
