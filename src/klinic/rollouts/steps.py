"""What is known of one step's samples together: means, sameness, and what the reward follows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from klinic.rollouts.words import PERMUTATIONS, words_of

Floats = npt.NDArray[np.float64]

SAMPLED = 64  # samples a step that the heavy measures (MinHash, words) look at, evenly spread (our choice)
NEAR = (
    0.8  # of the signature equal: a near-duplicate (the usual threshold of MinHash deduplication)
)
WHOLE = 3  # samples of a group below which it is taken for a part of one, or for a prompt that was printed twice (our choice)
EXAMPLES = 3  # samples named a step and trait
WORDS_KEPT = 96  # words a step whose use is kept
LOOPS = 0.5  # share of repeated runs of words from which a completion is a loop (our choice)
SQUEEZED = 10.0  # compression from which it is one (slime's repetition_frac)
SQUEEZED_LOOP = 5.0  # compression from which a long text that repeats its runs is a loop and no table (read in printed groups: loops 5.9 and more, tables below 4)
ECHOED = 3.0  # times the words of the prompt: said over and over (our choice)
MIXED = 0.05  # share of foreign letters from which a completion mixes languages (our choice)

MEANS = ("reward", "advantage", "length", "truncated", "acc", "right", "words", "stated", "empty", "echoed", "copied", "trailing",
    "unread", "last_number", "repeated", "broken", "refusal", "flattery", "failed", "policy_version")  # fmt: skip
# Ways to write that a reward may pay for although they solve nothing; each between 0 and 1 a sample.
TRAITS = ("empty", "blocks", "listed", "covered", "echoed", "copied", "unread", "unstated", "trailing", "last_number", "flattery")  # fmt: skip


def traits_of(columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """The traits of samples, (n,) each, NaN where they cannot be told."""
    stated = columns["stated"]
    listed = columns["listed"]
    anyone = np.any(stated > 0)
    return {
        "empty": columns["empty"],
        "blocks": np.clip((stated - 1) / 3, 0, 1),
        "listed": np.where(stated == 1, np.clip((listed - 1) / 2, 0, 1), 0.0),
        "covered": columns["covered"],
        "echoed": np.clip(columns["echoed"] / ECHOED, 0, 1),
        "copied": columns["copied"],
        "unread": columns["unread"],
        "unstated": (stated == 0).astype(float) if anyone else np.full(len(stated), math.nan),
        "trailing": columns["trailing"],
        "last_number": columns["last_number"],
        "flattery": columns["flattery"],
    }


def of_step(
    columns: Mapping[str, Any],
    groups: Sequence[str],
    tasks: Sequence[str],
    signatures: Sequence[bytes | None],
    texts: Mapping[int, str],
    parts: Mapping[str, Floats],
    names: Sequence[str],
) -> dict[str, Any]:
    """Describe one step. columns: as of ``measure``. signatures, texts: of the sampled rows, None and absent elsewhere.

    parts: the reward's parts, (n,) each. names: what each sample is called.

    Returns plain numbers under "mean", the others by name; what cannot be told is left out.
    """
    n = len(groups)
    group = _codes(groups)
    reward, right = columns["reward"], columns["right"]
    said: dict[str, Any] = {"n": n, "groups": int(group.max()) + 1 if n else 0}
    said["texts"] = int(np.bitwise_xor.reduce(columns["hash_text"])) if n else 0
    said["mean"] = {
        name: _mean(columns[name]) for name in MEANS if np.isfinite(columns[name]).any()
    }
    said["judged"] = float(np.mean(np.isfinite(right))) if n else 0.0
    said["loops"] = float(np.mean(loops(columns["repeated"], columns["squeezed"])))
    foreign = columns["foreign"][np.isfinite(columns["foreign"])]
    if foreign.size:
        said["mixed"] = float(np.mean(foreign >= MIXED))
    length = columns["length"] if np.isfinite(columns["length"]).any() else columns["words"]
    said |= _sameness(columns, group, signatures)
    said |= _groups(reward, group)
    said |= _lengths(length, reward, right, group)
    rated = np.flatnonzero(np.isfinite(reward) & np.isfinite(length))
    rated = rated[spread(len(rated), SAMPLED)]
    # A prompt is kept as a number below 2**50, which a float holds exactly.
    said["pairs"] = [
        [float(reward[i]), math.log1p(float(length[i])), int(columns["hash_prompt"][i]) >> 13]
        for i in rated
    ]
    said["traits"] = {
        name: found
        for name, trait in traits_of(columns).items()
        if (found := _trait(trait, reward, right, group, parts, names)) is not None
    }
    said["parts"] = {name: _mean(values) for name, values in parts.items()}
    order = np.argsort(np.where(np.isfinite(reward), -reward, np.inf), kind="stable")
    said["best"] = [names[i] for i in order[:EXAMPLES]]
    said["words"] = _words(texts, reward, right, group)
    slices = {task for task in tasks if task}
    if len(slices) > 1:
        at = np.array(tasks, dtype=object)
        said["tasks"] = {
            task: {
                "n": int((at == task).sum()),
                "reward": _mean(reward[at == task]),
                "right": _mean(right[at == task]),
                "length": _mean(length[at == task]),
            }
            for task in sorted(slices)
        }
    return said


def loops(repeated: Floats, squeezed: Floats) -> npt.NDArray[np.bool_]:
    """Which samples say the same over and over. Tables repeat runs of words too, but are not squeezed as far; short texts are not squeezed at all."""
    over_again = (repeated >= LOOPS) & ((squeezed == 1.0) | (squeezed >= SQUEEZED_LOOP))
    said: npt.NDArray[np.bool_] = (squeezed >= SQUEEZED) | over_again
    return said


def spread(n: int, most: int) -> npt.NDArray[np.int64]:
    """At most ``most`` places among n, evenly spread: the stated sample of the heavy measures."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def _mean(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else None


def _codes(names: Sequence[str]) -> npt.NDArray[np.int64]:
    order: dict[str, int] = {}
    return np.array([order.setdefault(name, len(order)) for name in names], dtype=np.int64)


def _sameness(
    columns: Mapping[str, Any], group: npt.NDArray[np.int64], signatures: Sequence[bytes | None]
) -> dict[str, Any]:
    """Equal and nearly equal completions within groups and across prompts, and how many begin or end alike."""
    text, prompt = columns["hash_text"], columns["hash_prompt"]
    sizes = np.bincount(group)
    several = sizes >= 2
    said: dict[str, Any] = {}
    if several.any():
        pairs = np.unique(np.stack([group, text], 1), axis=0)
        distinct = np.bincount(pairs[:, 0], minlength=len(sizes))
        said["unique"] = float(((distinct - 1) / np.maximum(sizes - 1, 1))[several].mean())
    if len(np.unique(prompt)) >= 2:
        said["across"] = _share_of_first(columns["hash_skeleton"], prompt)
    if len(np.unique(prompt)) >= WHOLE:  # of one prompt's answers each form is used at all prompts
        for name in ("opening", "ending"):
            said[name] = _share_of_first(columns[f"hash_{name}"], prompt)
    rows = [i for i, s in enumerate(signatures) if s is not None]
    if len(rows) >= 2:
        marks = np.frombuffer(b"".join(signatures[i] or b"" for i in rows), np.uint32).reshape(
            -1, PERMUTATIONS
        )
        alike = (marks[:, None, :] == marks[None, :, :]).mean(-1)
        upper = np.triu(np.ones(alike.shape, dtype=bool), 1)
        same = prompt[rows][:, None] == prompt[rows][None, :]
        within, across = alike[upper & same], alike[upper & ~same]
        if within.size:
            said["near"] = float((within >= NEAR).mean())
        if across.size:
            said["similar"] = float(across.mean())
    return said


def _share_of_first(hashes: npt.NDArray[np.int64], prompt: npt.NDArray[np.int64]) -> float:
    """Share of the prompts at which the most common form is used."""
    pairs = np.unique(np.stack([hashes, prompt], 1), axis=0)
    _, counts = np.unique(pairs[:, 0], return_counts=True)
    return float(counts.max() / len(np.unique(prompt)))


def _groups(reward: Floats, group: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Share of groups whose rewards are all equal, and the spread within groups; nothing where groups are hardly there."""
    whole = [
        mine
        for g in range(int(group.max()) + 1 if group.size else 0)
        if len(mine := reward[(group == g) & np.isfinite(reward)]) >= WHOLE
    ]
    if len(whole) < 2 or 2 * sum(map(len, whole)) < len(reward):
        return {}
    stds = [float(mine.std()) for mine in whole]
    return {"zero_std": float(np.mean(np.array(stds) < 1e-9)), "reward_std": float(np.mean(stds))}


def _centred(values: Floats, group: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_]) -> Floats:
    """Values of the kept rows minus their group's mean; a group of one gives 0."""
    mine, codes = values[kept], group[kept]
    counts = np.bincount(codes, minlength=int(group.max()) + 1)
    sums = np.bincount(codes, mine, minlength=len(counts))
    return mine - (sums / np.maximum(counts, 1))[codes]


def _sums(x: Floats, y: Floats) -> list[float]:
    """Sums of products that pool over steps: xx, yy, xy, and how many."""
    return [float(x @ x), float(y @ y), float(x @ y), len(x)]


def correlation(sums: Sequence[float]) -> float:
    """The correlation that pooled sums of products give; NaN where one side does not vary."""
    xx, yy, xy = sums[:3]
    return xy / math.sqrt(xx * yy) if xx > 1e-12 and yy > 1e-12 else math.nan


def _lengths(
    length: Floats, reward: Floats, right: Floats, group: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """How reward and right answers go with length within a prompt, and how long right and wrong answers are."""
    said: dict[str, Any] = {}
    for name, other, among in (
        ("reward_length", reward, np.isfinite(reward)),
        ("right_length", right, np.isfinite(right)),
        ("wrong_length", reward, np.isfinite(reward) & (right != 1.0)),
    ):
        kept = np.isfinite(length) & among
        if kept.sum() >= 2:
            said[name] = _sums(_centred(length, group, kept), _centred(other, group, kept))
    kept = np.isfinite(length) & np.isfinite(reward)
    if kept.sum() >= 2:
        said["pay"] = _sums(_centred(np.log1p(length), group, kept), _centred(reward, group, kept))
    for name, value in (("length_right", 1.0), ("length_wrong", 0.0)):
        mine = length[(right == value) & np.isfinite(length)]
        if mine.size:
            said[name] = float(mine.mean())
    return said


def _trait(
    trait: Floats,
    reward: Floats,
    right: Floats,
    group: npt.NDArray[np.int64],
    parts: Mapping[str, Floats],
    names: Sequence[str],
) -> dict[str, Any] | None:
    """How common a trait is, what those with it earn, and how reward goes with it among answers that are not right."""
    known = np.isfinite(trait)
    if not known.any():
        return None
    said: dict[str, Any] = {"mean": float(trait[known].mean()), "n": int(known.sum())}
    paid = known & np.isfinite(reward)
    wrong = paid & (right != 1.0)
    have = trait >= 0.5
    if wrong.sum() >= 2:
        more = _centred(trait, group, wrong)
        said["pays"] = _sums(more, _centred(reward, group, wrong))
        said["parts"] = {
            name: _sums(more, _centred(np.nan_to_num(values), group, wrong))
            for name, values in parts.items()
        }
    for name, rows in (
        ("with_wrong", wrong & have),
        ("without_wrong", wrong & ~have),
        ("right", paid & (right == 1.0) & ~have),
    ):
        if rows.any():
            said[name] = [float(reward[rows].sum()), int(rows.sum())]
    shown = np.flatnonzero(wrong & have)
    said["examples"] = [
        names[i] for i in shown[np.argsort(-reward[shown], kind="stable")][:EXAMPLES]
    ]
    judged = known & np.isfinite(right) & have
    if judged.any():
        said["right_with"] = [float(right[judged].sum()), int(judged.sum())]
    return said


def _told(word: str) -> bool:
    """A word of two letters and more, or an ideograph: digits and marks are answers, not manners."""
    return word.isalpha() and (len(word) > 1 or word >= "\u3400")


def _words(
    texts: Mapping[int, str], reward: Floats, right: Floats, group: npt.NDArray[np.int64]
) -> dict[str, Any]:
    """The most used words: uses a sample, and how reward goes with them among answers that are not right."""
    rows = [i for i in texts if math.isfinite(reward[i])]
    if len(rows) < 4:
        return {}
    counts = [Counter(filter(_told, words_of(texts[i].lower()))) for i in rows]
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    at = np.array(rows)
    wrong = right[at] != 1.0
    said = {}
    for word, uses in total.most_common(WORDS_KEPT):
        used = np.array([count[word] for count in counts], dtype=float)
        pays = (
            _sums(_centred(used, group[at], wrong), _centred(reward[at], group[at], wrong))
            if wrong.sum() >= 2
            else [0.0, 0.0, 0.0, 0]
        )
        said[word] = [uses / len(rows), *pays]
    return said
