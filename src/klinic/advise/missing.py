"""What a run does not log: how its trainer would log it, and what cannot be diagnosed without it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from klinic.advise import how_to_log
from klinic.compiled import parsed
from klinic.diagnosis import Diagnosis, Missing
from klinic.run import Run
from klinic.trainers import GENERIC, tables
from klinic.vitals import STAND_INS, VITALS, fits, players

# Beside the eight vital curves: what decides between the commonest failures.
ASKED = (*VITALS, "zero_std", "trunc", "mismatch", "grad_norm")


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the minimal dashboard of a hand-written loop; the fields are explained in dashboard.toml."""

    when: str
    key: str
    names: tuple[str, ...]
    en: str
    zh: str
    part: str = ""
    least: int = 1

    def logged(self, run: Run) -> bool:
        """Whether the run has it."""
        have = [*run.curves, *(["checkpoint"] if run.checkpoints else [])]
        found = [one for one in have if any(fits(name, one) for name in self.names)]
        return len(found) >= self.least


@dataclass(frozen=True, slots=True)
class Lack:
    """One role that is not logged. own: whether the trainer's table says how; blind: failures not checked for want of it."""

    missing: Missing
    own: bool
    stand_in: str
    blind: tuple[str, ...]


def lacks(answer: Diagnosis) -> list[Lack]:
    """Roles that the run of a diagnosis lacks, in their order."""
    run = answer.run
    found = []
    for role in ASKED:
        if players(role, run.curves):
            continue
        other = next((o for o in STAND_INS.get(role, ()) if players(o, run.curves)), "")
        table = tables()[run.trainer.name]
        blind = tuple(
            f.failure
            for f in answer.findings
            if f.status == "not_checked" and any(m.metric == role for m in f.missing)
        )
        own = role in table.log or run.trainer.name == GENERIC
        found.append(Lack(how_to_log(run, role), own, other, blind))
    return found


@cache
def dashboard() -> tuple[Item, ...]:
    """The minimal dashboard, in order."""
    raw = parsed(Path(__file__).with_name("dashboard.toml"))["item"]
    return tuple(msgspec.convert(item, Item) for item in raw)


def checklist(run: Run) -> Iterable[tuple[Item, bool]]:
    """Every item and whether the run logs it; a critic's only where one is logged."""
    critic = any(name.startswith(("value_loss/", "explained_var/")) for name in run.curves)
    for item in dashboard():
        if item.part != "critic" or critic:
            yield item, item.logged(run)
