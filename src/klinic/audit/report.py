"""What an audit found."""

from __future__ import annotations

import math
from dataclasses import dataclass

from klinic.audit.convention import Convention
from klinic.audit.honest import Honest
from klinic.audit.rows import Data


@dataclass(frozen=True, slots=True)
class Earned:
    """What one exploit earns.

    example, row: the text that earned most above a wrong answer, and the row it was written for. excess: reward above a
    wrong answer, a row each. lucky: rows left out, since the right answer stood there by chance. knows: the text holds the
    right answer beside a wrong statement. share: of the way from wrong to right. paid: share of the rows. pays: a hole.
    """

    form: str
    name: str
    example: str
    row: int
    mean: float
    excess: tuple[float, ...]
    lucky: int
    knows: bool
    share: float = math.nan
    paid: float = 0.0
    pays: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """A spelling of right answers that earns less than half of what the plain one does, on count of the rows."""

    name: str
    text: str
    answer: str
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Labelled:
    """How the user's own labelled answers fare: numbers of right and wrong ones, wrong ones paid, right ones not."""

    right: int
    wrong: int
    paid: tuple[tuple[int, str], ...]
    unpaid: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Calls that gave no number. kind: error, died, hung, none or non-finite; the first one is told."""

    kind: str
    told: str
    at: str
    text: str
    row: int
    count: int


@dataclass(frozen=True, slots=True)
class Report:
    """The whole audit. gap: what a right answer earns above a wrong one. noise: std of the reward of one text.

    apart: largest difference between the reward alone and in a batch. seconds: median of a call. left: what no time was left for.
    """

    function: str
    convention: Convention
    data: Data
    used: int
    honest: Honest
    gap: float
    threshold: float
    earned: tuple[Earned, ...]
    rejected: tuple[Rejected, ...]
    labelled: Labelled | None
    troubles: tuple[Trouble, ...]
    noise: float
    apart: float | None
    seconds: float
    slowest: tuple[float, str, str]
    wall: float
    calls: int
    left: tuple[str, ...]

    @property
    def holes(self) -> list[Earned]:
        """The exploits that pay, the best-paid first."""
        return sorted((e for e in self.earned if e.pays), key=lambda e: -e.share)
