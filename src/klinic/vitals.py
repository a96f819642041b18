"""The eight vital curves and every other role a metric can play in a diagnosis.

A role is what a rule asks for ("kl"); a canonical name says how it was measured
("kl_ref/k3/token_mean/response_only"). ``vitals.toml`` holds them all: ``names`` lists the canonical names that can play
a role, best first, ``*`` standing for any text. Two metrics of different definition are never merged: the first that
the run has plays the role, the others stay available under their own names.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from klinic.compiled import compiled, parsed

# The order in which a reader should believe curves (seed 001 1.3): what the optimiser does, what the policy is, and
# how it behaves.
LAYERS = ("optimisation", "policy", "behaviour")


class Role(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a curve means. scale: how changes of it are measured, one of "log", "share", "level".

    log: a quotient matters (entropy, KL, length), above ``floor``. share: a difference on 0..1 matters. level: only the
    curve's own noise gives a unit (reward). layer: one of ``LAYERS``. steady: it should not move at all. coarse: a share
    over few groups, whose levels are means since medians of 0 and 1 jump. Healthy shapes and what their loss means are
    those of seed 000 (table of the eight) and seed 003 (reading table), corrected where science.md 1.1 settles a
    disagreement.
    """

    name: str
    names: tuple[str, ...]
    unit: str
    scale: str
    layer: str
    en: dict[str, str]
    zh: dict[str, str]
    floor: float = 0.0
    steady: bool = False
    coarse: bool = False

    def says(self, what: str, lang: str) -> str:
        """The ``title``, the ``healthy`` or the ``abnormal`` shape, in words."""
        return (self.zh if lang == "zh" else self.en)[what]


def _roles() -> dict[str, Role]:
    path = Path(__file__).with_suffix(".toml")
    raw: dict[str, Any] = compiled("vitals", [path], lambda: parsed(path))
    return {name: msgspec.convert({"name": name, **role}, Role) for name, role in raw.items()}


ROLES = _roles()

VITALS: tuple[str, ...] = (
    "reward",
    "acc",
    "entropy",
    "kl",
    "adv_std",
    "clip_frac",
    "ratio_mean",
    "len",
)

# What is drawn under its own name where a vital curve is not logged (DESIGN.md section 3).
STAND_INS: dict[str, tuple[str, ...]] = {
    "acc": (),
    "adv_std": ("zero_std",),
    "ratio_mean": ("mismatch", "ratio_geo"),
    "kl": ("kl_k1",),
}


def fits(pattern: str, name: str) -> bool:
    """Whether ``name`` has the form of ``pattern``, in which ``*`` stands for any text."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    if not name.startswith(first) or not name.endswith(rest[-1]):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = name.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at <= len(name) - len(rest[-1])


def role_of(canonical: str) -> str | None:
    """The role a canonical metric name can play, None if it plays none."""
    for role in ROLES.values():
        if any(fits(name, canonical) for name in role.names):
            return role.name
    return None


def players(role: str, available: Iterable[str]) -> list[str]:
    """Canonical names among ``available`` that can play ``role``, best first."""
    have = list(available)
    return [name for pattern in ROLES[role].names for name in have if fits(pattern, name)]
