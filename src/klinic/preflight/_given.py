"""The batch as the checks read it: NumPy arrays of one width, and what the models say of it, computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from klinic.errors import BadUsage
from klinic.instrument.arrays import library
from klinic.preflight._batch import COLUMNS, ROWS, WHOLE, Array, Batch

RECOMPUTED_ROWS = 8  # our choice: an error of the code shows in every row


class Given:
    """One batch and what came with it. Raises BadUsage where shapes do not fit."""

    def __init__(
        self,
        batch: Batch,
        *,
        tokenizer: Any = None,
        reference_tokenizer: Any = None,
        model: Any = None,
        reference_model: Any = None,
        loss: Any = None,
        logits: Callable[[Any, Any], Any] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self.batch, self.logits, self.loss, self.versions = batch, logits, loss, versions
        self.tokenizer, self.reference_tokenizer = tokenizer, reference_tokenizer
        self.model, self.reference_model = model, reference_model
        self._raw = {
            name: numbers(value, name)
            for name in (*COLUMNS, *ROWS, "advantages")
            if (value := getattr(batch, name)) is not None
        }
        self.rows = self._shape()
        ids = self._raw.get("ids")
        wide = [v.shape[1] for v in self._raw.values() if v.ndim == 2]
        self.width = ids.shape[1] if ids is not None else max(wide, default=0)
        for name, value in self._raw.items():
            if value.ndim == 2 and value.shape[1] > self.width:
                raise BadUsage(
                    f"{value.shape[1]} columns, ids have {self.width}",
                    name,
                    "an array covers the last columns of ids, and never more than all of them",
                )

    def _shape(self) -> int:
        rows = None
        for name, value in self._raw.items():
            dimensions = (1, 2) if name == "advantages" else (2,) if name in COLUMNS else (1,)
            if value.ndim not in dimensions:
                wanted = "(B,)" if name in ROWS else "(B, L)"
                raise BadUsage(
                    f"the shape {value.shape} is not {wanted}",
                    name,
                    "B rows, L columns: klinic.preflight.Batch says what each field is",
                )
            rows = len(value) if rows is None else rows
            if len(value) != rows:
                raise BadUsage(
                    f"{len(value)} rows, other arrays have {rows}",
                    name,
                    "every array has one row a response",
                )
        return rows or 0

    def has(self, name: str) -> bool:
        """Whether an array was handed over."""
        return name in self._raw

    def per_row(self, name: str) -> Array:
        """An array (B,)."""
        return self._raw[name]

    def columns(self, name: str) -> Array:
        """An array (B, L), NaN in the columns that it does not cover."""
        raw = self._raw[name]
        found = np.full((self.rows, self.width), np.nan)
        found[:, self.width - raw.shape[1] :] = raw
        return found

    def yes(self, name: str) -> Array:
        """A mask (B, L) as booleans; no in the columns that it does not cover."""
        return np.nan_to_num(self.columns(name)) != 0

    def of_response(self, name: str) -> Array:
        """An array (B, L) of which the response's tokens are read. Raises BadUsage where it does not reach them."""
        found = self.columns(name)
        short = self.width - self._raw[name].shape[1]
        if self.response[:, :short].any():
            raise BadUsage(
                f"the last {self._raw[name].shape[1]} columns, but the mask has response tokens before them",
                name,
                "an array covers the last columns of ids, and never more than all of them",
            )
        return found

    @cached_property
    def ids(self) -> Array:
        """Token ids (B, L)."""
        return self._raw["ids"].astype(np.int64)

    @cached_property
    def response(self) -> Array:
        """The response mask (B, L) without the first column, which nothing predicts."""
        found = self.yes("mask")
        if self.has("ids"):
            found[:, :1] = False
        return found

    @cached_property
    def pad(self) -> int | None:
        """The padding token."""
        return self._special("pad", "pad_token_id")

    @cached_property
    def bos(self) -> int | None:
        """The token that begins a text."""
        return self._special("bos", "bos_token_id")

    @cached_property
    def eos(self) -> tuple[int, ...]:
        """The tokens that end a response; none where they are not known."""
        found = self.batch.eos
        if found is None:
            found = getattr(self.tokenizer, "eos_token_id", None)
            config = getattr(self.model, "generation_config", None)
            found = getattr(config, "eos_token_id", None) if found is None else found
        if found is None:
            return ()
        return tuple(int(token) for token in np.atleast_1d(numbers(found, "eos")))

    def _special(self, field: str, attribute: str) -> int | None:
        found = getattr(self.batch, field)
        found = getattr(self.tokenizer, attribute, None) if found is None else found
        return None if found is None else int(found)

    @cached_property
    def real(self) -> Array | None:
        """Where no padding is (B, L), None where that is not known.

        Where the end token pads, the first of a row's last ones is taken for the response's own.
        """
        if self.has("attention"):
            return self.yes("attention")
        if self.pad is None or not self.has("ids"):
            return None
        filled = self.ids == self.pad
        if self.pad not in self.eos:
            return ~filled
        leading = np.cumprod(filled, 1).astype(bool)
        trailing = np.cumprod(filled[:, ::-1], 1).astype(bool)[:, ::-1]
        first = trailing & ~np.roll(trailing, 1, 1)
        return ~(leading | (trailing & ~first))

    @cached_property
    def prompt(self) -> Array | None:
        """Where the prompt is (B, L), None where that is not known."""
        if self.has("prompt_mask"):
            return self.yes("prompt_mask")
        if not self.has("prompt_lengths") or not self.has("ids"):
            return None
        real = np.ones_like(self.ids, bool) if self.real is None else self.real
        return real & (real.cumsum(1) <= self.per_row("prompt_lengths")[:, None])

    @cached_property
    def logp(self) -> Array | None:
        """The policy's log-probs now (B, L): handed over, or the model's (NaN in rows that were not computed)."""
        return self.of_response("logp") if self.has("logp") else self._computed(self.model)

    @cached_property
    def by_model(self) -> Array | None:
        """Log-probs (B, L) that the model gives, NaN where none was computed; None without a model, ids or padding."""
        return self._computed(self.model)

    @cached_property
    def by_reference(self) -> Array | None:
        """The same of the reference model."""
        return self._computed(self.reference_model)

    def _computed(self, model: Any, temperature: float | None = None) -> Array | None:
        if model is None or not self.has("ids") or self.real is None:
            return None
        from klinic.preflight._model import log_probs

        heat = self.batch.temperature if temperature is None else temperature
        return log_probs(model, self.ids, self.real, RECOMPUTED_ROWS, heat, self.logits)

    def at_temperature(self, model: Any, temperature: float) -> Array | None:
        """What a model gives at another temperature."""
        return self._computed(model, temperature)


def numbers(value: Any, name: str) -> Array:
    """Any array as NumPy's, half precision as float32. Raises BadUsage for what holds no numbers."""
    if library(value) is not np:
        value = value.detach().cpu()
        value = (value.float() if value.is_floating_point() else value).numpy()
    try:
        found = np.asarray(value)
    except ValueError:
        found = np.asarray(None)
    if found.dtype.kind not in "biuf":
        raise BadUsage(
            "it is no array of numbers", name, "hand over a torch tensor or a NumPy array"
        )
    return found


def plain(name: str, value: Any) -> Any:
    """A field read from a file: single numbers as numbers, names of versions as text."""
    array = value if hasattr(value, "ndim") else np.asarray(value)
    if name in WHOLE and array.ndim == 0:
        return int(array)
    return array.item() if array.ndim == 0 else value
