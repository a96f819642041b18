"""Which curve each of the eight panels draws, with its bands and what speaks of it; the clocks; the curves of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from klinic.diagnosis import Diagnosis
from klinic.render._vitals import absent, player
from klinic.render.report.encode import FULL, Encoder
from klinic.run import Curve, Run
from klinic.text import in_every_language as both
from klinic.vitals import ROLES, VITALS

# Beside which panel a line of evidence stands that speaks of another curve: the vital curve it is read together with.
BESIDE = {
    "acc": ("train_acc", "heldout", "verifier_error", "partial", "all_right", "all_wrong"),
    "reward": (
        "reward_std",
        "reward_low",
        "reward_median",
        "reward_high",
        "reward_truncated",
        "format_ok",
        "format_error",
    ),
    "entropy": (
        "entropy_start",
        "entropy_middle",
        "entropy_end",
        "entropy_coef",
        "uniq",
        "similarity",
    ),
    "kl": ("kl_k1", "kl_seq", "kl_coef", "kl_old"),
    "adv_std": ("zero_std", "adv_max"),
    "clip_frac": ("grad_norm", "lr", "loss", "ratio_outside"),
    "ratio_mean": (
        "ratio_geo",
        "ratio_std",
        "mismatch",
        "staleness",
        "ratio_low",
        "ratio_high",
        "ess",
        "router_agreement",
    ),
    "len": (
        "trunc",
        "len_max",
        "len_min",
        "len_right",
        "len_wrong",
        "repetition",
        "relation_reward_len",
        "relation_acc_len",
    ),
}
# Quantile bands by the vital curve, inner first: the first pair that is logged is drawn dark, a wider one faint.
INNER = {
    "reward": "reward_quantile/{}",
    "len": "len/response_{}",
    "ratio_mean": "ratio_quantile/{}",
    "entropy": "entropy_quantile/{}",
}
PAIRS = (("p25", "p75"), ("p10", "p90"), ("p05", "p95"), ("p01", "p99"), ("min", "max"))
BY_POSITION, PART = "entropy_by_position/", "reward_part/"


def played(run: Run) -> set[str]:
    """Canonical names of the curves that are drawn with all their points: the panels' own."""
    return {name for role in VITALS if (name := player(run, role)[1]) is not None}


def bands(run: Run, role: str, name: str) -> list[list[str]]:
    """At most two pairs of canonical names, narrow and wide, between which a panel is shaded."""
    if role not in INNER:
        return []
    patterns = [INNER[role]]
    if role == "ratio_mean":  # the quantiles of the same ratio as the mean's
        kind = name.split("/")[1]
        patterns = [f"ratio_quantile/{kind}/{{}}", *patterns]
    found = []
    for pattern in patterns:
        for low, high in PAIRS:
            pair = [pattern.format(low), pattern.format(high)]
            if all(end in run.curves and len(run.curves[end].values) for end in pair):
                found.append(pair)
        if found:
            break
    return found[:1] + found[-1:] if len(found) > 1 else found


def panels(answer: Diagnosis) -> list[dict[str, Any]]:
    """The eight panels in the fixed order; one without a curve says why, or which flag logs it."""
    return [_panel(answer, role) for role in VITALS]


def _panel(answer: Diagnosis, role: str) -> dict[str, Any]:
    run = answer.run
    shown, name = player(run, role)
    evaluations = [n for n in run.curves if n.startswith("eval/") and n.endswith("/acc")]
    return {
        "role": role,
        "shown": shown,
        "curve": name,
        "title": both(lambda lang: ROLES[shown].says("title", lang)),
        "healthy": both(lambda lang: ROLES[shown].says("healthy", lang)),
        "abnormal": both(lambda lang: ROLES[shown].says("abnormal", lang)),
        "bands": bands(run, shown, name) if name else [],
        "overlays": [n for n in evaluations if n != name][:4] if role == "acc" else [],
        "line": 1.0 if shown in ("ratio_mean", "ratio_geo") else None,
        "speaks": [role, shown, *BESIDE[role]],
        "absent": None if name else both(lambda lang: " · ".join(absent(answer, role, lang))),
    }


def clocks(run: Run, encoder: Encoder) -> dict[str, Any]:
    """Seconds and tokens so far by step, where the log tells: other x axes."""
    found: dict[str, Any] = {}
    for name, key in (("time/step_s", "time"), ("tokens/seen", "tokens")):
        curve = run.curves.get(name)
        if curve is None or len(curve.values) < 2:
            continue
        finite = np.isfinite(curve.values)
        steps, values = curve.steps[finite], curve.values[finite]
        if len(values) < 2:
            continue
        if key == "time":
            # A row speaks for the steps since the row before it.
            values = np.cumsum(values * np.diff(steps, prepend=steps[0] - 1))
        so_far = np.maximum.accumulate(values)
        if so_far[-1] > so_far[0]:
            found[key] = encoder.curve(Curve(curve.metric, steps, so_far), FULL)
    return found


def parts(run: Run) -> dict[str, list[str]]:
    """Canonical names of the curves that are drawn together: reward parts, evaluations, entropy by position."""
    have = [name for name, curve in run.curves.items() if len(curve.values)]
    position = [
        n for n in have if n.startswith(BY_POSITION) and n.removeprefix(BY_POSITION).isdigit()
    ]
    return {
        "reward": [n for n in have if n.startswith(PART)],
        "evaluations": [n for n in have if n.startswith("eval/")],
        "positions": sorted(position, key=lambda n: int(n.removeprefix(BY_POSITION))),
    }
