"""The shape of a model, by name or from its config.json: how many parameters, and how wide everything is."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from klinic.compiled import parsed
from klinic.errors import BadUsage, UnreadableInput, did_you_mean


class Model(msgspec.Struct, frozen=True):
    """A decoder with grouped-query attention and a gated feed-forward net; experts: of a mixture, each ``ffn`` wide."""

    names: tuple[str, ...]
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    ffn: int
    vocabulary: int
    tied: bool = False
    bias: bool = False
    experts: int = 1
    active: int = 1

    @property
    def name(self) -> str:
        """Its first name."""
        return self.names[0]

    @property
    def attention(self) -> int:
        """Width of the queries; keys and values are ``kv_heads * head`` wide."""
        return self.heads * self.head

    @property
    def layer(self) -> int:
        """Parameters of one layer."""
        keys = self.kv_heads * self.head
        attention = 2 * self.hidden * self.attention + 2 * self.hidden * keys
        router = self.hidden * self.experts if self.experts > 1 else 0
        return (
            attention
            + (self.attention + 2 * keys if self.bias else 0)
            + 3 * self.hidden * self.ffn * self.experts
            + router
            + 2 * self.hidden
        )

    @property
    def parameters(self) -> int:
        """All parameters."""
        embedding = self.vocabulary * self.hidden
        return self.layers * self.layer + embedding * (1 if self.tied else 2) + self.hidden

    def adapters(self, rank: int) -> int:
        """Parameters of LoRA adapters on all linear layers: rank x (in + out) each (Hu et al. 2021, section 4.1)."""
        keys = self.kv_heads * self.head
        widths = 2 * (self.hidden + self.attention) + 2 * (self.hidden + keys)
        return rank * self.layers * (widths + 3 * self.experts * (self.hidden + self.ffn))


@cache
def known() -> tuple[Model, ...]:
    """The models klinic knows by name."""
    table = parsed(Path(__file__).parent / "models.toml")
    return tuple(msgspec.convert(row, Model) for row in table["model"])


def model(asked: str) -> Model:
    """By name ("7B", "Qwen2.5-7B-Instruct"), or from a config.json or the folder it is in. Raises BadUsage, UnreadableInput."""
    place = Path(asked)
    if place.is_dir():
        place = place / "config.json"
    if place.is_file():
        return _from_config(place)
    wanted = _plain(asked)
    for found in known():
        if wanted in (_plain(name) for name in found.names):
            return found
    for found in known():
        if any(len(name) > 5 and wanted.startswith(_plain(name)) for name in found.names):
            return found
    names = [name for found in known() for name in found.names]
    raise BadUsage(
        f"unknown model {asked!r}",
        "--model",
        did_you_mean(asked, names)
        or "give a size (7B), a name (Qwen3-8B), or the path of its config.json",
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.rpartition("/")[2]).lower()


def _from_config(place: Path) -> Model:
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        found = {**found, **found.get("text_config", {})}
        heads = int(found["num_attention_heads"])
        experts = int(
            found.get("num_experts")
            or found.get("num_local_experts")
            or found.get("n_routed_experts")
            or 1
        )
        return Model(
            names=(place.resolve().parent.name,),
            hidden=int(found["hidden_size"]),
            layers=int(found["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(found.get("num_key_value_heads") or heads),
            head=int(found.get("head_dim") or found["hidden_size"] // heads),
            ffn=int(
                (found.get("moe_intermediate_size") if experts > 1 else 0)
                or found["intermediate_size"]
            ),
            vocabulary=int(found["vocab_size"]),
            tied=bool(found.get("tie_word_embeddings", False)),
            bias="qwen2" in str(found.get("model_type", "")) or bool(found.get("attention_bias")),
            experts=experts,
            active=int(found.get("num_experts_per_tok") or 1),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as trouble:
        missing = (
            f"it has no {trouble}"
            if isinstance(trouble, KeyError)
            else "it is no model configuration"
        )
        raise UnreadableInput(
            missing, str(place), "name the config.json of a language model"
        ) from None


def kv_token(shape: Model, width: int = 2) -> int:
    """Bytes of key and value of one token over all layers (Kwon et al. 2023, section 3.1, with grouped queries)."""
    found: Any = 2 * shape.layers * shape.kv_heads * shape.head * width
    return int(found)
