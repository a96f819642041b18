"""What a run is: curves, configuration, checkpoints and events, and nothing that acts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Steps = npt.NDArray[np.int64]
    Values = npt.NDArray[np.float64]


NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity together with how it was measured; the definition travels with the number.

    name: canonical, e.g. ``kl_ref/k3/token_mean/response_only``. source_key: the log's own key.
    conversion: what was done to the logged numbers ("percent to share"), None if nothing; "not comparable" (alone or
    last) where the level depends on something unknown, so that only the curve's shape says anything.
    derived_from: the canonical names it was computed from, None if it was logged.
    """

    name: str
    definition: str
    unit: str
    source_key: str
    conversion: str | None = None
    derived_from: tuple[str, ...] | None = None

    @property
    def comparable(self) -> bool:
        """Whether an absolute threshold may judge the level."""
        return self.conversion is None or not self.conversion.endswith(NOT_COMPARABLE)


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over the steps at which it was logged.

    steps: (n,), strictly increasing within the newest segment. values: (n,), in ``metric.unit``; a NaN
    or infinity was logged as such, a step at which nothing was logged has no row.
    """

    metric: Metric
    steps: Steps
    values: Values

    @property
    def nonfinite_steps(self) -> Steps:
        """Steps at which the log says NaN or infinity."""
        import numpy as np

        return self.steps[~np.isfinite(self.values)]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of steps without a restart; a step that goes back starts the next one."""

    first: int
    last: int
    rewound_to: int | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A saved policy on disk. missing: parts that a complete checkpoint of this trainer would have."""

    step: int
    name: str
    path: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something the log says that is no number: kind is one of traceback, crash, verifier, negative-kl, not-finite.

    at: "file:line". step: the last step logged before it, None if none was. lines: what was said, trimmed.
    """

    kind: str
    at: str
    step: int | None
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the run's own configuration: knob is our word, flag the trainer's.

    own: what the flag itself holds, where ``value`` counts something else (updates a batch, and not passes over it).
    """

    knob: str
    flag: str
    value: Any
    at: str
    own: Any = None


@dataclass(frozen=True, slots=True)
class Trainer:
    """Which trainer wrote the log, what gave it away, and its version where the log states it ("0.8.0")."""

    name: str
    title: str
    because: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A way of earning reward without solving anything, as the samples show it.

    name: format, list, echo, extractor or judge (seed 000, blow-up two). trait: what was measured of each sample; words: what a
    judge is given to like. step: since when, known to lie in low..high. before, after: how common the trait is early and
    late. paid, unpaid: the mean reward of answers that are not right, with the trait and without it. honest: that of
    right ones without it. examples: names of samples, "STEP/GROUP/ROW".
    """

    name: str
    trait: str
    step: int
    low: int
    high: int
    before: float
    after: float
    paid: float | None
    unpaid: float | None
    honest: float | None
    examples: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    part: str | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """What the samples of a run tell beside its curves.

    dumps: files they were read from. picked: they were printed into a log, somebody's choice that gives no curves.
    """

    count: int
    first: int
    last: int
    steps: int
    dumps: tuple[str, ...]
    forms: tuple[Form, ...] = ()
    picked: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One training run, read and named; never changed afterwards.

    curves: canonical metric name -> Curve. config: knob -> Setting. unread_keys: numeric keys that the
    trainer's table does not know. absent: metrics whose constant 0 means "not computed", and why (en, zh). holds: counts of what the log holds beside metrics.
    """

    name: str
    path: str
    trainer: Trainer
    curves: Mapping[str, Curve]
    config: Mapping[str, Setting] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    segments: tuple[Segment, ...] = ()
    events: tuple[Event, ...] = ()
    sources: tuple[str, ...] = ()
    unread_keys: tuple[str, ...] = ()
    absent: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    holds: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    first: int = 0
    last: int = 0
    logged: int = 0
    samples: Samples | None = None

    def setting(self, knob: str) -> Any:
        """The run's own value of a knob, None if the log does not say."""
        found = self.config.get(knob)
        return None if found is None else found.value
