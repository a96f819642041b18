"""The training loop: sample, score, advantages, several updates, measure. All randomness hangs on (seed, step)."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np

from klinic import instrument
from klinic.instrument.entropy import log_softmax
from klinic.lab import advantages, losses, metrics, rewards, warmup
from klinic.lab.adam import Adam, clipped, through_half_precision
from klinic.lab.control import Coefficients
from klinic.lab.network import (
    Array,
    Samples,
    Weights,
    backward,
    forward,
    logits_of,
    new_critic,
    sample,
    value,
    value_backward,
)
from klinic.lab.settings import Settings, changed
from klinic.lab.tasks import PROMPT_LENGTH, SHARES, TASKS, Problem, draw
from klinic.lab.words import EOS, text

EVAL_SEED = 4242  # the evaluation set is the same for every run
UNCLIPPED = 1e9


class Trainer:
    """One run in memory. ``state`` and ``restore`` are what a checkpoint holds."""

    def __init__(
        self,
        settings: Settings,
        seed: int,
        at: int = 0,
        fault: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings, self.seed = settings, seed
        self.at, self.fault = at, dict(fault or {})  # switched at the start of step ``at``
        self.step = 0
        self.base = warmup.load(settings.base)
        self.policy = _copy(self.base)
        hidden = self.policy["recurrent"].shape[0]
        self.critic = new_critic(np.random.default_rng(seed + 7), hidden)
        self.optimizer, self.critic_optimizer = Adam(self.policy), Adam(self.critic)
        self.sampler, self.sampler_version = _copy(self.policy), 0
        self.recent: deque[Weights] = deque()  # the newest last; as many as the sampler lags behind
        self.stale_left = 0
        self.coefficients = Coefficients(settings)
        random = Random(EVAL_SEED)
        low, high = settings.digits_low, settings.digits_high
        self.evaluation = [
            draw(random, task, random.randint(low, high))
            for task in TASKS
            for _ in range(settings.eval_prompts)
        ]

    def train_step(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """One step: what it logs, and its samples."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a run may blow up; its log says so
            return self._train_step()

    def _train_step(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        if self.step == self.at and self.fault:
            self.settings = changed(self.settings, self.fault)
            self.coefficients.under(self.settings)
            self.stale_left = self.settings.stale_queue
        s = self.settings
        rng = np.random.default_rng([self.seed, self.step])
        problems = self._problems()
        weights, version = self._sampler()
        prompts = np.array([p.tokens for p in problems])
        samples = _cut(sample(weights, prompts, rng, s.max_new_tokens, s.temperature))
        mask = samples.mask
        m = mask.astype(np.float32)
        lengths = instrument.lengths(mask)
        ended = instrument.ended(samples.tokens, mask, EOS)
        scores = [
            rewards.score(row[kept].tolist(), problem, s, fails)
            for row, kept, problem, fails in zip(
                samples.tokens,
                mask,
                problems,
                rng.random(len(problems)) < s.verifier_failure,
                strict=True,
            )
        ]
        full = np.concatenate([prompts, samples.tokens], 1)
        now, states = self._log_probs(self.policy, full)
        reference, _ = self._log_probs(self._reference(), full)
        if s.surprise_weight:
            for i, score in enumerate(scores):
                surprise = -(reference[i] * m[i]).sum() / lengths[i]
                score.parts["surprise"] = s.surprise_weight * float(np.clip(surprise, 0, 6))
        total = s.reward_scale * np.array([sum(score.parts.values()) for score in scores])
        old = now if s.old_logprobs == "recompute" else samples.logp

        values = returns = None
        if s.algorithm == "ppo":
            values = value(self.critic, states).T * m
            advantage, returns = advantages.gae(total, values, m, s.gae_lambda)
            used_std = float(advantage[mask].std())
            if s.whiten:
                advantage = instrument.whiten(advantage, m)
        else:
            one = advantages.group_advantages(total, s.group, s.advantage_scaling, s.baseline)
            used_std = float(one.std())
            advantage = np.repeat(one[:, None], mask.shape[1], 1)
        advantage = (advantage * m).astype(np.float32)

        updates, value_losses = [], []
        for _ in range(s.epochs):
            for rows in np.array_split(rng.permutation(len(full)), max(1, s.minibatches)):
                terms = (full[rows], m[rows], old[rows], reference[rows], advantage[rows])
                updates.append(self._update(*terms, samples.logp[rows]))
                if values is not None and returns is not None:
                    value_losses.append(self._update_critic(full[rows], m[rows], returns[rows]))

        row: dict[str, Any] = {
            "step": self.step,
            **metrics.of_rewards(scores, total, lengths, s.group),
            **metrics.of_samples(samples.tokens, mask, ended, samples.entropy, s.group),
            **metrics.of_policies(now, samples.logp, reference, mask),
            **metrics.of_updates(updates),
            "adv_std_used": used_std,
            "policy_version": self.step,
            "rollout_version": version,
            "lag": self.step - version,
            "lr": self._lr(),
        }
        if values is not None and returns is not None:
            row |= metrics.of_critic(values, returns, mask, value_losses)
            row["adv_std"] = used_std
        row |= self.coefficients.update(row["kl"], row["entropy"])
        if self.step % s.eval_every == 0:
            row |= self.evaluate()
        kept = [
            {
                "step": self.step,
                "group": i // s.group,
                "prompt": text(problems[i].tokens),
                "completion": text(samples.tokens[i][mask[i]].tolist()),
                "answer": problems[i].answer,
                "reward": float(total[i]),
                "acc": scores[i].right,
                "length": int(lengths[i]),
                "truncated": not ended[i],
                "reward_parts": scores[i].parts,
                "policy_version": version,
            }
            for i in range(len(problems))
        ]
        self.step += 1
        return row, kept

    def evaluate(self) -> dict[str, float]:
        """Greedy accuracy on the fixed set: the main task, the mean of the others, and each."""
        prompts = np.array([p.tokens for p in self.evaluation])
        found = sample(
            self.policy,
            prompts,
            np.random.default_rng(0),
            self.settings.max_new_tokens,
            greedy=True,
        )
        right = [
            rewards.is_right(tokens[kept].tolist(), problem.answer)
            for tokens, kept, problem in zip(found.tokens, found.mask, self.evaluation, strict=True)
        ]
        by_task = {
            task: float(
                np.mean([r for r, p in zip(right, self.evaluation, strict=True) if p.task == task])
            )
            for task in TASKS
        }
        others = [share for task, share in by_task.items() if task != self.settings.task]
        return {
            "eval_acc": by_task[self.settings.task],
            "eval_other": float(np.mean(others)),
            **{f"eval_{task}": share for task, share in by_task.items()},
        }

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Everything a resume needs: plain numbers, and named arrays."""
        arrays: dict[str, Array] = {}
        for name, weights in (
            ("policy", self.policy),
            ("first", self.optimizer.first),
            ("second", self.optimizer.second),
            ("critic", self.critic),
            ("critic_first", self.critic_optimizer.first),
            ("critic_second", self.critic_optimizer.second),
            ("sampler", self.sampler),
            *((f"recent_{i}", weights) for i, weights in enumerate(self.recent)),
        ):
            arrays |= {f"{name}.{key}": array for key, array in weights.items()}
        numbers: dict[str, Any] = {
            "step": self.step,
            "seed": self.seed,
            "at": self.at,
            "optimizer_count": self.optimizer.count,
            "critic_optimizer_count": self.critic_optimizer.count,
            "sampler_version": self.sampler_version,
            "stale_left": self.stale_left,
            "recent": len(self.recent),
        }
        if kept := self.coefficients.state():
            numbers["coefficients"] = kept
        return numbers, arrays

    def restore(self, numbers: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take over what ``state`` gave."""

        def part(name: str) -> Weights:
            return {
                key.partition(".")[2]: np.array(array)
                for key, array in arrays.items()
                if key.partition(".")[0] == name
            }

        self.policy, self.critic, self.sampler = part("policy"), part("critic"), part("sampler")
        self.optimizer.first, self.optimizer.second = part("first"), part("second")
        self.critic_optimizer.first = part("critic_first")
        self.critic_optimizer.second = part("critic_second")
        self.optimizer.count = numbers["optimizer_count"]
        self.critic_optimizer.count = numbers["critic_optimizer_count"]
        self.recent = deque(part(f"recent_{i}") for i in range(numbers["recent"]))
        self.step, self.at = numbers["step"], numbers["at"]
        self.sampler_version, self.stale_left = numbers["sampler_version"], numbers["stale_left"]
        self.coefficients.restore(numbers.get("coefficients", {}))

    def _problems(self) -> list[Problem]:
        s = self.settings
        random = Random(f"{self.seed} {self.step}")
        found: list[Problem] = []
        for _ in range(s.prompts):
            task: str = s.task
            if random.random() < s.other_tasks:
                others = [t for t in TASKS if t != task]
                task = random.choices(others, [SHARES[t] for t in others])[0]
            found += [draw(random, task, random.randint(s.digits_low, s.digits_high))] * s.group
        return found

    def _sampler(self) -> tuple[Weights, int]:
        """The weights that sample this step, and their version."""
        s = self.settings
        if s.lag:
            self.recent.append(_copy(self.policy))
            while len(self.recent) > s.lag + 1:
                self.recent.popleft()
        if s.sync and s.lag:
            self.sampler, self.sampler_version = self.recent[0], self.step - len(self.recent) + 1
        elif s.sync:
            self.sampler, self.sampler_version = _copy(self.policy), self.step
        if self.stale_left:
            self.stale_left -= 1
            return self.base, 0
        if s.rollout_bits:
            return {
                k: _rounded(w, s.rollout_bits) for k, w in self.sampler.items()
            }, self.sampler_version
        return self.sampler, self.sampler_version

    def _reference(self) -> Weights:
        other = self.settings.reference
        return self.base if other < 0 else warmup.load(other)

    def _lr(self) -> float:
        return self.settings.lr * min(1.0, (self.step + 1) / max(1, self.settings.lr_warmup))

    def _log_probs(self, policy: Weights, full: Array) -> tuple[Array, Array]:
        """Log-probs (B, T) of the sampled tokens, and the states (T, B, H) they were predicted from."""
        states = forward(policy, full[:, :-1]).states[PROMPT_LENGTH:]
        log_probs = log_softmax(logits_of(policy, states) / self.settings.temperature)
        target = full[:, PROMPT_LENGTH:].T[..., None]
        return np.take_along_axis(log_probs, target, -1)[..., 0].T, states

    def _update(
        self, full: Array, m: Array, old: Array, reference: Array, advantage: Array, sampler: Array
    ) -> dict[str, Any]:
        """One gradient step on some of the rows; all (b, T) but ``full`` (b, P + T)."""
        s = self.settings
        done = forward(self.policy, full[:, :-1])
        logits = logits_of(self.policy, done.states[PROMPT_LENGTH:])
        weights = losses.token_weights(m.T, s.loss_aggregation, s.max_new_tokens)
        if s.loss_mask == "prompt":  # no response token is left that counts
            weights = weights * 0
        terms = losses.Terms(full[:, PROMPT_LENGTH:].T, old.T, reference.T, advantage.T, weights)
        low, high = (s.clip_low, s.clip_high) if s.clipping else (UNCLIPPED, UNCLIPPED)
        knobs = losses.Knobs(
            s.temperature, low, high, self.coefficients.beta, self.coefficients.entropy_coef
        )
        loss, d_logits, seen = losses.policy_loss(logits, terms, knobs)
        gradient = backward(self.policy, done, PROMPT_LENGTH - 1, d_logits)
        if s.loss_scale:
            gradient = through_half_precision(gradient, s.loss_scale)
        gradient, size = clipped(gradient, s.max_grad_norm)
        self.optimizer.step(self.policy, gradient, self._lr())
        k = m.T > 0
        true = instrument.ratio(seen["logp"], sampler.T, k)
        found = instrument.clipping(true, advantage.T, s.clip_low, s.clip_high)
        return {
            "loss": loss,
            "grad_norm": size,
            "logp": seen["logp"][k],
            "sampler": sampler.T[k],
            "ratio_outside": float(instrument.masked_mean(found.outside, k)),
            "ratio_trainer": float(instrument.masked_mean(seen["ratio"], k)),
            "clip_frac": float(instrument.masked_mean(found.active, k)),
            "clip_frac_trainer": float(instrument.masked_mean(seen["bound"], k)),
        }

    def _update_critic(self, full: Array, m: Array, returns: Array) -> float:
        states = forward(self.policy, full[:, :-1]).states[PROMPT_LENGTH:]
        weights = m.T / m.sum()
        loss, d_values = losses.value_loss(value(self.critic, states), returns.T, weights)
        self.critic_optimizer.step(
            self.critic, value_backward(self.critic, states, d_values), self.settings.critic_lr
        )
        return loss


def _copy(weights: Weights) -> Weights:
    return {name: array.copy() for name, array in weights.items()}


def _rounded(weights: Array, bits: int) -> Array:
    """The weights with ``bits`` bits of mantissa, as a low-precision sampler holds them."""
    fraction, exponent = np.frexp(weights)
    scale = 2.0 ** (bits + 1)
    return np.ldexp(np.round(fraction * scale) / scale, exponent).astype(weights.dtype)


def _cut(samples: Samples) -> Samples:
    """Without the columns after the longest response."""
    length = max(1, int(samples.mask.sum(1).max()))
    return Samples(
        samples.tokens[:, :length],
        samples.logp[:, :length],
        samples.entropy[:, :length],
        samples.mask[:, :length],
    )
