"""From tallies to the metrics that are more than a mean: spreads, quantiles, geometric means, ESS, explained variance.

Each is a function of counts and sums, so it is right for the whole batch whatever the batch was split into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from klinic.instrument.tally import Tally

Tallies = Mapping[str, Tally]
# Tallies that are only read below; their mean is no metric of its own, or has another name.
INNER = ("pair/", "log_ratio/", "advantages/", "ratio_seq/", "critic/")


def readings(tallies: Tallies) -> dict[str, float]:
    """Every metric these tallies allow, by its canonical name."""
    found = {name: t.mean for name, t in tallies.items() if not name.startswith(INNER)}
    for name, tally in tallies.items():
        for start, more in MORE.items():
            if name.startswith(start):
                kind = name.removeprefix(start)
                found |= {
                    key.format(kind): how(tally) for key, how in more.items() if _holds(key, tally)
                }
    if "critic/returns" in tallies:
        found |= _critic(tallies)
    if "pair/reward_len/sum" in tallies:
        a, b, both = (tallies[f"pair/reward_len/{part}"] for part in ("a", "b", "sum"))
        found["relation/reward_len"] = _correlation(a, b, both)
    return found


def _quantile(at: float) -> Callable[[Tally], float]:
    return lambda tally: tally.quantile(at)


def _exp_quantile(at: float) -> Callable[[Tally], float]:
    return lambda tally: math.exp(tally.quantile(at))


# By the start of the tally's name; {} is the rest of it.
MORE: dict[str, dict[str, Callable[[Tally], float]]] = {
    "reward/seq_mean/raw": {
        "reward_std/batch": Tally.std,
        "reward_quantile/min": lambda t: t.low,
        "reward_quantile/p10": _quantile(0.1),
        "reward_quantile/p50": _quantile(0.5),
        "reward_quantile/p90": _quantile(0.9),
        "reward_quantile/max": lambda t: t.high,
    },
    "len/response_mean": {
        "len/response_min": lambda t: t.low,
        "len/response_p50": _quantile(0.5),
        "len/response_p90": _quantile(0.9),
        "len/response_max": lambda t: t.high,
        "samples/count": lambda t: float(t.count),
    },
    "advantages/group_normalised": {"adv_std/group_normalised": Tally.std},
    "adv_mean/token_mean/response_only": {
        "adv_std/token/response_only": Tally.std,
        "adv_min/token/response_only": lambda t: t.low,
        "adv_max/token/response_only": lambda t: t.high,
    },
    "log_ratio/": {
        "ratio_geo/{}": lambda t: math.exp(t.mean),
        "ratio_quantile/{}/p01": _exp_quantile(0.01),
        "ratio_quantile/{}/p50": _exp_quantile(0.5),
        "ratio_quantile/{}/p99": _exp_quantile(0.99),
        "ratio_quantile/{}/min": lambda t: math.exp(t.low),
        "ratio_quantile/{}/max": lambda t: math.exp(t.high),
    },
    "ratio_mean/new_over_old/token_mean": {
        "ratio_std/new_over_old": Tally.std,
        "ess/new_over_old/token": lambda t: t.ess_fraction,
    },
    "ratio_mean/train_over_rollout/token_mean": {
        "ratio_std/train_over_rollout": Tally.std,
        "mismatch_ess/share": lambda t: t.ess_fraction,
    },
    "ratio_seq/": {"ess/{}/seq": lambda t: t.ess_fraction},
}


def _holds(key: str, tally: Tally) -> bool:
    """Whether the tally can say it: quantiles only where they were kept."""
    return tally.sketch is not None or not key.rsplit("/", 1)[-1].removeprefix(
        "response_"
    ).startswith("p")


def _critic(tallies: Tallies) -> dict[str, float]:
    values, returns, off = (tallies[f"critic/{part}"] for part in ("values", "returns", "off"))
    spread = returns.var()
    return {
        "explained_var/token": 1 - off.var() / spread if spread > 0 else math.nan,
        "returns_mean/token_mean/response_only": returns.mean,
        "returns_std/token/response_only": returns.std(),
        "value_mean/token_mean/response_only": values.mean,
        "value_std/token/response_only": values.std(),
        "value_bias/token_mean/response_only": off.mean,
        "value_rmse/token/response_only": math.sqrt(off.mean**2 + off.var()),
        "relation/returns_values": _correlation(values, returns, off, -1),
    }


def _correlation(a: Tally, b: Tally, both: Tally, sign: int = 1) -> float:
    """Pearson's correlation from the spread of a, of b and of a + sign * b."""
    size = 2 * a.std() * b.std()
    return sign * (both.var() - a.var() - b.var()) / size if size > 0 else math.nan
