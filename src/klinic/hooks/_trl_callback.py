"""The callback itself; importing this imports transformers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from klinic.failures import SEVERITIES
from klinic.hooks._trl_metrics import Tap
from klinic.hooks.checkup import Checkup, checked
from klinic.watch.monitor import CONFIDENCES, SURE


class KlinicCallback(TrainerCallback):
    """Diagnoses a TRL run while it trains, and logs what TRL does not.

    every: rows between two diagnoses; fast steps wait longer, for a diagnosis takes at most 1 % of the time. stop_on, save_on: the
    severity ("stop", "act" or "caution") from which the training is stopped, or a checkpoint is saved; None: never. confidence: how
    sure klinic must be of what it tells ("certain", "likely" or "possible"); while there are fewer than 40 rows, twice in a row.
    lang: of what it tells ("en" or "zh"; default: KLINIC_LANG).

    Each failure is told once on standard error; ``output_dir/klinic.json`` has the latest diagnosis. seconds: the time all this took.
    Raises BadUsage for a word it does not know; afterwards nothing: what fails inside is said once, and the callback goes quiet.
    """

    def __init__(
        self,
        every: int = 20,
        stop_on: str | None = None,
        save_on: str | None = None,
        *,
        confidence: str = SURE,
        lang: str | None = None,
    ) -> None:
        self.every = max(1, int(every))
        self.stop_on = checked(stop_on, SEVERITIES, "stop_on")
        self.save_on = checked(save_on, SEVERITIES, "save_on")
        sure = checked(confidence, CONFIDENCES, "confidence") or SURE
        self.seconds, self.quiet = 0.0, False
        self.saved_for: set[str] = set()
        self._checkup = Checkup(lang or os.environ.get("KLINIC_LANG", "en"), sure)
        self._tap: Tap | None = None
        self._rows = 0

    @property
    def diagnosis(self) -> Any:
        """The latest Diagnosis (on the main process), None before the first."""
        return self._checkup.latest

    def attach(self, trainer: Any) -> KlinicCallback:
        """Listen to this trainer, to log what TRL does not. Call it once, on every rank, after the trainer was made."""
        self._guard(lambda: setattr(self, "_tap", Tap(trainer, self._guard)))
        return self

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Diagnose where it is due. All ranks come here at the same rows; the main process decides for all."""
        logs = kwargs.get("logs") or {}
        if any(key.startswith(("eval_", "train_runtime")) for key in logs):
            return control
        self._rows += 1
        if self._rows % self.every:
            return control
        wish = [False, False]
        if state.is_world_process_zero:
            self._guard(lambda: wish.__setitem__(slice(None), self._decide(args, state)))
        stop, save = _agreed(wish)
        if stop:
            control.should_training_stop = True
        if save:
            control.should_save = True
        return control

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """The last word, whatever the number of rows."""
        if state.is_world_process_zero and self._rows:
            self._guard(lambda: self._look(args, state, ended=True))
        return control

    def _decide(self, args: Any, state: Any) -> list[bool]:
        if not self._checkup.affordable():
            return [False, False]
        self._look(args, state)
        # Once a failure: a checkpoint a diagnosis would push the healthy ones out of save_total_limit.
        grave = set(self._checkup.reached(self.save_on)) - self.saved_for
        self.saved_for |= grave
        return [bool(self._checkup.reached(self.stop_on)), bool(grave)]

    def _look(self, args: Any, state: Any, ended: bool = False) -> None:
        told = self._checkup.look(state.log_history, args.output_dir, args.to_dict(), ended)
        if told:
            print(told, file=sys.stderr, end="", flush=True)

    def _guard(self, do: Callable[[], Any]) -> bool:
        """Run it; whatever it raises is said once and ends klinic's part, never the training."""
        if self.quiet:
            return False
        begun = time.perf_counter()
        try:
            do()
            return True
        except Exception as trouble:
            self._go_quiet(trouble)
            return False
        finally:
            self.seconds += time.perf_counter() - begun

    def _go_quiet(self, trouble: Exception) -> None:
        self.quiet = True
        if self._tap is not None:
            self._tap.forget()
        try:
            from klinic.said import complaint

            what = f"klinic's callback stops watching: {type(trouble).__name__}: {trouble}"
            print(
                complaint(what, "", "the training goes on without it", self._checkup.lang),
                file=sys.stderr,
                flush=True,
            )
        except Exception:
            pass


def _agreed(wish: list[bool]) -> list[bool]:
    """What the main process wishes, on every rank: one of them alone must not leave the loop."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        dist.broadcast_object_list(wish, src=0)
    return wish
