"""What TRL's GRPO and RLOO trainers compute and do not log, put into their own metrics, so that every tracker gets it.

TRL offers no place for this, so methods of the one trainer object are wrapped: the one that computes log-probs and entropies
is listened to while the loss is computed, and ``log`` first puts the numbers where TRL keeps its own. No forward pass is added and
no tensor of TRL's is changed. Read in trl 1.16.0 (trl/trainer/grpo_trainer.py: _compute_loss, log).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from klinic.errors import BadUsage
from klinic.instrument.arrays import Array
from klinic.instrument.entropy import PARTS, position
from klinic.instrument.kl import LOG_RATIO_LIMIT, log_ratio
from klinic.instrument.step import RESPONSE, Step

NEEDED = ("_compute_loss", "_get_per_token_logps_and_entropies", "_metrics", "log")
ADVANTAGES = "advantages/of_responses"  # an inner tally: its spread alone is logged
ADV_STD = "adv_std/group_normalised"
# Log ratios are counted on a grid: parts of a batch add up exactly, and a quantile of the ratio is within 0.05 %.
WIDTH = 1e-3
HALF = round(LOG_RATIO_LIMIT / WIDTH)
QUANTILES = {"p01": 0.01, "p50": 0.5, "p99": 0.99}
Guard = Callable[[Callable[[], Any]], bool]


class Tap:
    """Listens to one trainer. guard: runs what klinic does, and swallows what it raises.

    Raises BadUsage where the trainer has not the methods that TRL 1.16's have.
    """

    def __init__(self, trainer: Any, guard: Guard) -> None:
        lacking = [name for name in NEEDED if not hasattr(trainer, name)]
        if lacking:
            raise BadUsage(
                f"this trainer has no {lacking[0]}",
                type(trainer).__name__,
                "klinic's callback knows TRL 1.16's GRPOTrainer; without attach it only diagnoses",
            )
        self._trainer, self._guard = trainer, guard
        self._heard: tuple[Any, Any] | None = None
        self._listening = self._quiet = False
        self._begin()
        compute, score, log = (
            trainer._compute_loss,
            trainer._get_per_token_logps_and_entropies,
            trainer.log,
        )

        def scored(*args: Any, **kwargs: Any) -> Any:
            found = score(*args, **kwargs)
            if self._listening:
                self._heard = (found[0], found[1])
            return found

        def computed(model: Any, inputs: Any) -> Any:
            self._listening = bool(trainer.model.training) and not self._quiet
            try:
                loss = compute(model, inputs)
            finally:
                self._listening = False
            heard, self._heard = self._heard, None
            if heard is not None:
                guard(lambda: self._count(inputs, *heard))
            return loss

        def logged(*args: Any, **kwargs: Any) -> Any:
            if trainer.model.training:
                self._hand_over()
            return log(*args, **kwargs)

        trainer._compute_loss, trainer.log = computed, logged
        trainer._get_per_token_logps_and_entropies = scored

    def _begin(self) -> None:
        """sums: arrays that are added up over micro-batches and ranks, by name."""
        self._step, self._sums = Step(quantiles=False), dict[str, Array]()

    def _count(self, inputs: Any, logp: Any, entropy: Any) -> None:
        """Count one micro-batch in. logp, entropy (B, L); advantages (B,), or (B, L) in subclasses."""
        mask = inputs["completion_mask"]
        if "tool_mask" in inputs:
            mask = mask * inputs["tool_mask"]
        mask_BL, logp_BL = _near(mask) != 0, _near(logp)
        advantages = _near(inputs["advantages"])
        if len(advantages.shape) == 1:
            self._step.add(ADVANTAGES, advantages)
            advantages = np.broadcast_to(advantages[:, None], mask_BL.shape)
        self._step.add(f"adv_mean/token_mean/{RESPONSE}", advantages, mask_BL)
        if entropy is not None:
            self._by_position(_near(entropy), mask_BL)
        for name, old in (
            ("new_over_old", inputs.get("old_per_token_logps")),
            ("train_over_rollout", inputs.get("sampling_per_token_logps")),
        ):
            # Without old log-probs TRL divides the policy by itself: 1, and no measurement.
            if old is not None:
                self._ratio(name, logp_BL, _near(old), mask_BL)

    def _ratio(self, name: str, logp: Array, old: Array, mask: Array) -> None:
        told = mask & (old == old)  # vLLM leaves NaN where it could not score a token
        ratio = log_ratio(logp, old, told)
        self._step.add(f"log_ratio/{name}", ratio, told)
        self._step.add(f"ratio_mean/{name}/token_mean", np.exp(ratio), told)
        at = np.round(ratio[told & (ratio == ratio)] / WIDTH).astype(np.int64) + HALF
        self._sum(f"ratio/{name}", np.bincount(at, minlength=2 * HALF + 1))

    def _by_position(self, entropy: Array, mask: Array) -> None:
        at = (position(mask) * PARTS // np.maximum(mask.sum(-1), 1)[:, None])[mask]
        self._sum("entropy/count", np.bincount(at, minlength=PARTS))
        self._sum("entropy/total", np.bincount(at, weights=entropy[mask], minlength=PARTS))

    def _sum(self, name: str, values: Array) -> None:
        self._sums[name] = self._sums[name] + values if name in self._sums else values

    def _hand_over(self) -> None:
        """Put what was counted since the last row into the trainer's metrics. Every rank comes here, whatever it has counted."""
        step, sums = self._step, self._sums
        self._begin()
        try:
            # Not under the guard: a rank that has gone quiet must still join, or the others wait for it for ever.
            step.all_reduce()
            sums = _added_up(sums)
        except Exception as trouble:
            self._guard(partial(_raise, trouble))
        self._guard(lambda: self._put({**step.results(), **_of(sums)}, step))

    def _put(self, values: dict[str, float], step: Step) -> None:
        into = self._trainer._metrics["train"]
        for name, value in values.items():
            if value == value and name not in into:
                into[name] = [value]
        spread, args = step.tallies.get(ADVANTAGES), self._trainer.args
        group = int(getattr(args, "num_generations", 0) or 0)
        way = getattr(args, "multi_objective_aggregation", "sum_then_normalize")
        if (
            spread is not None
            and spread.count > 1
            and group > 1
            and getattr(args, "scale_rewards", None) == "group"
            and way == "sum_then_normalize"
        ):
            # TRL divides by the std of ddof 1; klinic's definition has ddof 0, 1 where no group is without variance.
            into[ADV_STD] = [spread.std() * math.sqrt(group / (group - 1))]

    def forget(self) -> None:
        """Count nothing any more; the exchange between ranks goes on."""
        self._quiet = True
        self._begin()


def _near(values: Any) -> Array:
    """A tensor as a NumPy array: small operations cost less there, and the tokens of a micro-batch are few."""
    return values.detach().float().cpu().numpy()


def _added_up(sums: dict[str, Array]) -> dict[str, Array]:
    """The sums of all ranks, where there are several."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized():
        return sums
    seen: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(seen, sums)
    return {
        name: sum(one[name] for one in seen if name in one)
        for name in dict.fromkeys(name for one in seen for name in one)
    }


def _of(sums: dict[str, Array]) -> dict[str, float]:
    found: dict[str, float] = {}
    if "entropy/count" in sums:
        for i, (total, count) in enumerate(
            zip(sums["entropy/total"], sums["entropy/count"], strict=True)
        ):
            found[f"entropy_by_position/{i}"] = float(total / count) if count else math.nan
    for name, counts in sums.items():
        if name.startswith("ratio/") and counts.any():
            upto = counts.cumsum()
            for label, at in QUANTILES.items():
                bin_ = int(np.searchsorted(upto, at * upto[-1]))
                key = f"ratio_quantile/{name.removeprefix('ratio/')}/{label}"
                found[key] = math.exp((bin_ - HALF) * WIDTH)
    return found


def _raise(trouble: Exception) -> None:
    raise trouble
