"""The samples of a run and its curves in one Run: what the log lacks is drawn from the samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from klinic.rollouts.controlled import controlled
from klinic.rollouts.dump import are_picked
from klinic.rollouts.forms import forms
from klinic.rollouts.steps import correlation
from klinic.run import Curve, Metric, Run, Samples, Segment
from klinic.vitals import players, role_of

Step = Mapping[str, Any]


def _in_mean(name: str) -> Callable[[Step], float | None]:
    return lambda step: step["mean"].get(name)


def _pays(name: str) -> Callable[[Step], float | None]:
    return lambda step: correlation(step[name]) if name in step else None


def _said(name: str) -> Callable[[Step], float | None]:
    return lambda step: step.get(name)


def _unstated(step: Step) -> float | None:
    trait = step["traits"].get("unstated")
    return None if trait is None else 1 - trait["mean"]


# canonical name -> (what of a step's description, unit, definition)
CURVES: dict[str, tuple[Callable[[Step], float | None], str, str]] = {
    "reward/seq_mean/raw": (_in_mean("reward"), "score", "mean reward of the samples"),
    "acc/seq_mean": (_in_mean("acc"), "share", "share of samples that the trainer calls right"),
    "acc/strict/from_samples": (_in_mean("right"), "share", "share of samples with one stated answer that equals the label"),
    "len/response_mean": (_in_mean("length"), "tokens", "mean length of the samples"),
    "trunc/frac_finish_length": (_in_mean("truncated"), "share", "share of samples cut at the length limit"),
    "groups/zero_std_frac": (_said("zero_std"), "share", "share of the samples' groups whose rewards are all equal"),
    "reward_std/group": (_said("reward_std"), "score", "std of the reward within a group, mean over groups"),
    "samples/unique_frac": (_said("unique"), "share", "share of distinct texts among the samples of a group"),
    "samples/cross_prompt_similarity": (_said("similar"), "share", "mean Jaccard index of runs of three words between answers to different prompts (MinHash)"),
    "repetition/from_samples": (_said("loops"), "share", "share of samples half of whose runs of four words stood before, or that compress tenfold"),
    "language/mixed_frac": (_said("mixed"), "share", "share of samples with over 5 % of their letters in a script the prompt does not use"),
    "refusal/frac": (_in_mean("refusal"), "share", "share of samples that begin with a refusal"),
    "format/stated_frac": (_unstated, "share", "share of samples that state an answer at all"),
    "verifier/error_frac": (_in_mean("failed"), "share", "share of samples at which the verifier raised"),
    "relation/reward_len": (_pays("reward_length"), "1", "correlation of reward and length within a prompt"),
    "relation/acc_len": (_pays("right_length"), "1", "correlation of right answers and length within a prompt"),
    "len/right_mean": (_said("length_right"), "tokens", "mean length of right answers"),
    "len/wrong_mean": (_said("length_wrong"), "tokens", "mean length of answers that are not right"),
    "reward/length_controlled": (_said("controlled"), "score", "mean reward at the length of the first sampled steps: length's own pay is taken off"),
    "win_rate/length_controlled": (_said("wins"), "share", "share of comparisons with the first sampled steps won with length's own pay taken off"),
}  # fmt: skip


def written_once(steps: Mapping[int, Step]) -> dict[int, Step]:
    """The steps without those that hold the samples of the one before again, as TRL writes them where a batch is used twice."""
    order = sorted(steps)
    return {
        step: steps[step]
        for before, step in zip([None, *order], order, strict=False)
        if before is None or steps[before]["texts"] != steps[step]["texts"]
    }


def described(steps: Mapping[int, Step]) -> dict[str, Curve]:
    """The curves that the samples of the steps draw, by canonical name."""
    order = sorted(steps)
    free_of_length = controlled(steps)
    steps = {step: {**steps[step], **free_of_length.get(step, {})} for step in order}
    found = {}
    for name, (take, unit, definition) in CURVES.items():
        known = [
            (step, value)
            for step in order
            if (value := take(steps[step])) is not None and math.isfinite(value)
        ]
        if known:
            metric = Metric(name, f"{definition} (from the samples)", unit, "samples")
            found[name] = Curve(
                metric, np.array([s for s, _ in known]), np.array([float(v) for _, v in known])
            )
    return found


def joined(run: Run, steps: Mapping[int, Step], dumps: tuple[str, ...]) -> Run:
    """The run with what its samples say: curves for the roles it does not log, and the forms of reward hacking."""
    if not steps:
        return run
    steps = written_once(steps)
    curves = dict(run.curves)
    picked = are_picked(dumps)
    for name, curve in () if picked else described(steps).items():
        role = role_of(name)
        if role is None or not players(role, run.curves):
            curves.setdefault(name, curve)
    first, last = min(steps), max(steps)
    samples = Samples(
        sum(s["n"] for s in steps.values()), first, last, len(steps), dumps, forms(steps), picked
    )
    bare = not run.curves  # nothing but samples
    return replace(
        run,
        curves=curves,
        samples=samples,
        first=first if bare else run.first,
        last=last if bare else run.last,
        logged=len(steps) if bare else run.logged,
        segments=(Segment(first, last),) if bare else run.segments,
    )
