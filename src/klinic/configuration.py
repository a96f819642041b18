"""The run's own configuration: what files beside the log say, and which knob each value sets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from klinic.errors import UnreadableInput
from klinic.run import Setting
from klinic.sources.rows import flatten, number
from klinic.trainers import Table

# trainer_state.json, train_results.json and train_log.json are no configuration.
CONFIG_NAMES = re.compile(
    r"^(config|training_args|args|arguments|hparams|hyper_?params|overrides|run_config"
    r"|(grpo|ppo|train)(?!.*(state|results?|log|metrics|history|stats|rewards?)\b)).*\.(ya?ml|json)$",
    re.IGNORECASE,
)
MODEL_FILES = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "adapter_config.json",
}


def configuration_beside(folder: Path) -> dict[str, tuple[Any, str]]:
    """Leaves of every configuration file beside a log, as {"a.b": (value, path)}; the first file wins."""
    found: dict[str, tuple[Any, str]] = {}
    places = [folder, folder / ".hydra", folder / "files", folder / "config"]
    for place in places:
        try:
            names = sorted(place.iterdir()) if place.is_dir() else []
        except OSError:
            continue
        for path in names:
            if (
                CONFIG_NAMES.match(path.name)
                and path.name not in MODEL_FILES
                and path.is_file()
                and path.stat().st_size < 4 << 20
            ):
                for key, value in configuration(path, required=False).items():
                    found.setdefault(key, value)
    return found


def configuration(path: Path, required: bool) -> dict[str, tuple[Any, str]]:
    """Leaves of a YAML or JSON configuration as {"a.b": (value, path)}."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as trouble:
        if not required:
            return {}
        raise UnreadableInput(
            f"cannot be read ({trouble.strerror})", str(path), "--config names a YAML or JSON file"
        ) from None
    try:
        if path.suffix == ".json":
            document = json.loads(text)
        else:
            import yaml

            document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception as trouble:  # yaml and json each have their own tree of errors
        if not required:
            return {}
        raise UnreadableInput(
            f"broken configuration: {str(trouble).splitlines()[0][:100]}",
            str(path),
            "--config names a YAML or JSON file",
        ) from None
    if not isinstance(document, dict):
        if not required:
            return {}
        raise UnreadableInput(
            "the configuration is no mapping",
            str(path),
            "--config names a YAML or JSON file of keys and values",
        )
    leaves: dict[str, tuple[Any, str]] = {}
    for key, value in flatten(document):
        name = str(key).replace("/", ".")
        leaves[name.removesuffix(".value")] = (
            value,
            str(path),
        )  # wandb's config.yaml nests {value: ...}
    return leaves


def settings_of(found: Mapping[str, tuple[Any, str]], table: Table) -> dict[str, Setting]:
    """Knobs whose value the configuration states; a dotted name matches its own ending too."""
    by_ending: dict[str, str] = {}
    for key in found:
        by_ending.setdefault(key.rpartition(".")[2], key)
    settings: dict[str, Setting] = {}
    for knob, rule in table.knob.items():
        for name in rule.config:
            if name in found:
                at_key: str | None = name
            elif "." in name:
                at_key = next((k for k in found if k.endswith("." + name)), None)
            else:
                at_key = by_ending.get(name)
            if at_key is not None:
                value, at = found[at_key]
                if (
                    isinstance(value, str)
                    and (parsed := number(value)) is not None
                    and not value.endswith("%")
                ):
                    value = int(parsed) if value.lstrip("+-").isdigit() else parsed
                if value is not None and not isinstance(value, dict | list):
                    settings[knob] = Setting(knob, rule.flag, value, at)
                    break
    _derive_settings(settings)
    return settings


def _derive_settings(settings: dict[str, Setting]) -> None:
    """Updates per batch: verl states epochs over minibatches, TRL iterations over steps of one generation."""

    def number_of(knob: str) -> float | None:
        found = settings.get(knob)
        if found is None or isinstance(found.value, bool):
            return None
        return float(found.value) if isinstance(found.value, int | float) else None

    for whole, part in (("prompts_per_step", "mini_batch"), ("steps_per_generation", "grad_accum")):
        total, each = number_of(whole), number_of(part)
        if not total or not each or (total <= each and part == "grad_accum"):
            continue
        epochs = number_of("updates_per_batch") or 1
        stated = settings.get("updates_per_batch", settings[part])
        count = max(1, round(total / each * epochs))
        settings["updates_per_batch"] = Setting(
            "updates_per_batch", stated.flag, count, stated.at, own=round(epochs)
        )
    passes, parts = number_of("updates_per_batch"), number_of("minibatches")
    if passes and parts and parts > 1:
        settings["updates_per_batch"] = replace(
            settings["updates_per_batch"], value=round(passes * parts), own=round(passes)
        )


def flag_value(setting: Setting | None) -> Any:
    """What a flag is set to; None where the configuration does not say."""
    if setting is None:
        return None
    return setting.value if setting.own is None else setting.own
