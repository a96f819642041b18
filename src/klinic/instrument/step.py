"""Everything one training step can say about itself, under klinic's own names, whatever it was split into.

    step = Step()
    for micro_batch in batch:            # on every rank
        step.policy(mask, logp, old=old, reference=ref, entropy=entropy, advantages=advantages)
    step.responses(mask, rewards=rewards, groups=8, ids=ids, eos=2)
    step.all_reduce()
    log(step.results())

A name says what was averaged over what: ``klinic diagnose`` reads these names as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from klinic.instrument import groups as by_group
from klinic.instrument import kl, ratios, responses
from klinic.instrument.arrays import Array, library, plain, wide
from klinic.instrument.entropy import PARTS, relative_parts
from klinic.instrument.masked import masked_sum
from klinic.instrument.readings import readings
from klinic.instrument.tally import Tally

RESPONSE = "response_only"


class Step:
    """The tallies of one step. Methods count a part of the batch in; ``results`` reads them, ``merge`` and ``all_reduce`` add."""

    def __init__(self, quantiles: bool = True) -> None:
        self.tallies: dict[str, Tally] = {}
        self.quantiles = quantiles

    def add(
        self, name: str, values: Array, mask: Array | None = None, quantiles: bool = False
    ) -> None:
        """Count values in under a name of your own; its mean is logged under that name."""
        if name not in self.tallies:
            self.tallies[name] = Tally(quantiles and self.quantiles)
        self.tallies[name].add(values, mask)

    def policy(
        self,
        mask_BL: Array,
        logp_BL: Array,
        *,
        old: Array | None = None,
        reference: Array | None = None,
        sampler: Array | None = None,
        entropy: Array | None = None,
        advantages: Array | None = None,
        clip_low: float = 0.2,
        clip_high: float = 0.2,
        dual: float | None = None,
    ) -> None:
        """Log-probs (nats) of one micro-batch, all (B, L): the current policy's, the loss's denominators', the reference's, the sampler's.

        kl_ref is KL(policy || reference); kl_old and kl_rollout are KL(old || policy) and KL(sampler || policy), the policies the
        tokens were drawn from, as verl, tinker and prime-rl have them. Clipping is that of the loss: with ``old``, or with the sampler where
        there is no old. What is not given is not logged.
        """
        logp_BL, old, reference, sampler, advantages = map(
            plain, (logp_BL, old, reference, sampler, advantages)
        )
        for name, p, q in (
            ("kl_ref", logp_BL, reference),
            ("kl_old", old, logp_BL),
            ("kl_rollout", sampler, logp_BL),
        ):
            if p is not None and q is not None:
                self._kl(name, p, q, mask_BL)
        for name, denominator in (("new_over_old", old), ("train_over_rollout", sampler)):
            if denominator is not None:
                self._ratio(name, logp_BL, denominator, mask_BL, clip_low, clip_high)
        denominator = old if old is not None else sampler
        if advantages is not None:
            self.add(f"adv_mean/token_mean/{RESPONSE}", advantages, mask_BL)
            if denominator is not None:
                found = ratios.clipping(
                    ratios.ratio(logp_BL, denominator, mask_BL),
                    wide(advantages),
                    clip_low,
                    clip_high,
                    dual,
                )
                self.add("clip_frac/token_mean/active", found.active, mask_BL)
                self.add("clip_frac/token_mean/outside_band", found.outside, mask_BL)
                self.add("clip_frac/token_mean/low", found.low, mask_BL)
                self.add("clip_frac/token_mean/high", found.high, mask_BL)
                if dual is not None:
                    self.add("clip_frac/token_mean/dual_clip", found.dual, mask_BL)
        if entropy is not None:
            self.add(f"entropy/token_mean/{RESPONSE}", entropy, mask_BL)
            for i, part in enumerate(relative_parts(mask_BL, PARTS)):
                self.add(f"entropy_by_position/{i}", entropy, part)

    def _kl(self, name: str, p: Array, q: Array, mask: Array) -> None:
        some = responses.lengths(mask)
        for estimator in ("k1", "k2", "k3") + (("abs",) if name == "kl_rollout" else ()):
            tokens = kl.ESTIMATORS[estimator](p, q, mask)
            self.add(f"{name}/{estimator}/token_mean/{RESPONSE}", tokens, mask)
            if estimator != "abs":
                self.add(
                    f"{name}/{estimator}/seq_sum/{RESPONSE}", masked_sum(tokens, mask, -1), some
                )

    def _ratio(
        self, name: str, new: Array, old: Array, mask: Array, low: float, high: float
    ) -> None:
        log_ratio = kl.log_ratio(new, old, mask)
        xp = library(log_ratio)
        ratio = xp.exp(log_ratio)
        self.add(f"log_ratio/{name}", log_ratio, mask, quantiles=True)
        self.add(f"ratio_mean/{name}/token_mean", ratio, mask)
        self.add(f"ratio_outside/{name}", ratios.clipping(ratio, ratio, low, high).outside, mask)
        whole = xp.clip(masked_sum(log_ratio, mask, -1), -kl.LOG_RATIO_LIMIT, kl.LOG_RATIO_LIMIT)
        self.add(f"ratio_seq/{name}", xp.exp(whole), responses.lengths(mask))

    def responses(
        self,
        mask_BL: Array,
        *,
        rewards: Array,
        groups: int | Array | None = None,
        right: Array | None = None,
        parts: Mapping[str, Array] | None = None,
        ended: Array | None = None,
        ids: Array | None = None,
        eos: int | Sequence[int] | None = None,
        cap: int | None = None,
    ) -> None:
        """The responses of whole groups. mask_BL, ids (B, L); rewards (score), right (0 or 1), ended, each reward part (B,).

        rewards is the raw score, before any KL penalty. groups: G, or ids (B,), see groups.py. ended: whether the sampler says the
        response came to its own end; without it, ``ids`` and ``eos`` tell. cap: the most tokens a response may have.
        """
        length = responses.lengths(mask_BL)
        rewards = wide(rewards)
        judged = rewards == rewards
        self.add("reward/seq_mean/raw", rewards, judged, quantiles=True)
        self.add("reward/missing_frac", ~judged)
        for name, values in (parts or {}).items():
            self.add(f"reward_part/{name}", values)
        self.add("len/response_mean", length, quantiles=True)
        self._pair("reward_len", rewards, length, judged)
        if ended is None and ids is not None and eos is not None:
            ended = responses.ended(ids, mask_BL, eos)
        if ended is not None:
            self.add("trunc/frac_finish_length", ended == 0)
            self.add("len/terminated_mean", length, ended)
        if cap is not None:
            self.add("trunc/frac_at_max_len", responses.at_cap(mask_BL, cap))
        if right is not None:
            self.add("acc/seq_mean", right)
            self.add("len/right_mean", length, right)
            self.add("len/wrong_mean", length, right == 0)
        if groups is not None:
            self._groups(mask_BL, rewards, groups, right, ids)

    def _groups(
        self,
        mask: Array,
        rewards: Array,
        groups: int | Array,
        right: Array | None,
        ids: Array | None,
    ) -> None:
        found = by_group.grouped(rewards, groups)
        spread, some = by_group.group_std(found), found.member_NG.any(1)
        self.add("reward_std/group", spread, some)
        self.add("groups/zero_std_frac", spread < by_group.EQUAL, some)
        self.add("advantages/group_normalised", by_group.group_advantages(rewards, groups))
        if right is not None:
            answers = by_group.grouped(right, groups)
            share, some = by_group.group_mean(answers), answers.member_NG.any(1)
            self.add("groups/all_right_frac", share == 1, some)
            self.add("groups/all_wrong_frac", share == 0, some)
        if ids is not None:
            self.add("samples/unique_frac", np.array(responses.unique_shares(ids, mask, groups)))

    def critic(self, values_BL: Array, returns_BL: Array, mask_BL: Array) -> None:
        """The critic's values and the returns (score), both (B, L)."""
        values, returns = wide(values_BL), wide(returns_BL)
        self.add("critic/values", values, mask_BL)
        self.add("critic/returns", returns, mask_BL)
        self.add("critic/off", values - returns, mask_BL)

    def _pair(self, name: str, a: Array, b: Array, mask: Array) -> None:
        """What a correlation needs: the spread of both and of their sum."""
        xp = library(a)
        a, b = xp.asarray(a, dtype=xp.float64), xp.asarray(b, dtype=xp.float64)
        for part, values in (("a", a), ("b", b), ("sum", a + b)):
            self.add(f"pair/{name}/{part}", values, mask)

    def merge(self, other: Step) -> None:
        """Count in what another Step has seen."""
        self._merge(other.tallies)

    def _merge(self, tallies: Mapping[str, Tally]) -> None:
        for name, tally in tallies.items():
            if name not in self.tallies:
                self.tallies[name] = Tally(tally.sketch is not None)
            self.tallies[name].merge(tally)

    def all_reduce(self, group: Any = None) -> None:
        """Add up the tallies of all ranks, in the order of the ranks, so that all hold the same. One collective call.

        group: a torch.distributed process group; the default one without. Ranks may have seen different metrics, or none. Every rank
        has to call it, once a step; where torch.distributed is not in use nothing happens.
        """
        import torch.distributed as dist

        if not dist.is_available() or not dist.is_initialized():
            return
        self._settle()
        seen: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(seen, self.tallies, group=group)
        self.tallies = {}
        for tallies in seen:
            self._merge(tallies)

    def results(self) -> dict[str, float]:
        """Every metric by its name; what nothing was counted for is NaN."""
        self._settle()
        return readings(self.tallies)

    def _settle(self) -> None:
        """Fetch all moments from the device at once: one wait a step, not one a metric."""
        far = [t for t in self.tallies.values() if library(t.moments) is not np]
        if far:
            for tally, moments in zip(
                far, library(far[0].moments).stack([t.moments for t in far]).tolist(), strict=True
            ):
                tally.moments = np.array(moments)
