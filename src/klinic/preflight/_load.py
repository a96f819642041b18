"""A batch from a file or from a function of the user's, and models from folders."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from klinic.errors import BadUsage, MissingExtra, UnreadableInput, did_you_mean
from klinic.preflight._batch import NAMES, Batch
from klinic.preflight._given import plain

KINDS = (".npz", ".pt", ".safetensors")


def from_function(target: str) -> tuple[Batch, dict[str, Any]]:
    """What ``MODULE:FUNCTION`` (or ``FILE.py:FUNCTION``) returns: a Batch, alone or with a dict of preflight's arguments.

    Raises BadUsage where it cannot be imported, is not there, raises, or returns something else.
    """
    from klinic.preflight import preflight

    module, _, name = target.rpartition(":")
    if not module or not name:
        raise BadUsage(
            f"cannot understand {target!r}",
            "klinic preflight",
            "write MODULE:FUNCTION, e.g. train:one_batch",
        )
    function = getattr(_imported(module, target), name, None)
    if not callable(function):
        raise BadUsage(
            f"there is no function {name!r}",
            module,
            "name a function that takes nothing and returns a Batch",
        )
    try:
        found = function()
    except Exception as trouble:
        raise BadUsage(
            f"your function raised {type(trouble).__name__}: {trouble}",
            target,
            "run it by itself first",
        ) from trouble
    batch, more = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
    if not isinstance(batch, Batch) or not isinstance(more, Mapping):
        raise BadUsage(f"it returned {type(batch).__name__}, no Batch", target,
                       "return Batch(...), or Batch(...), {'tokenizer': ..., 'model': ...}")  # fmt: skip
    known = list(inspect.signature(preflight).parameters)[1:]
    for key in more:
        if key not in known:
            raise BadUsage(
                f"unknown argument {key!r}",
                target,
                did_you_mean(str(key), known) or f"known: {', '.join(known)}",
            )
    return batch, dict(more)


def _imported(module: str, target: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        if not module.endswith(".py"):
            return importlib.import_module(module)
        path = Path(module)
        if not path.is_file():
            raise BadUsage(
                "no such file or folder", module, "write MODULE:FUNCTION, e.g. train:one_batch"
            )
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, found)
        spec.loader.exec_module(found)
        return found
    except BadUsage:
        raise
    except Exception as trouble:
        raise BadUsage(
            f"it cannot be imported ({type(trouble).__name__}: {trouble})",
            target,
            "run it by itself first",
        ) from trouble


def from_file(path: Path) -> Batch:
    """A Batch of the arrays in .npz, .pt (weights only) or .safetensors, by name. Raises UnreadableInput or BadUsage."""
    if path.suffix not in KINDS:
        raise BadUsage(f"unknown format {path.suffix!r}", str(path), f"known: {', '.join(KINDS)}")
    if not path.is_file():
        raise UnreadableInput("no such file or folder", str(path), "check the path")
    try:
        held = _arrays(path)
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{path.suffix} needs {error.name}",
            str(path),
            "pip install 'klinic[torch]', or write an .npz",
        ) from error
    except Exception as trouble:  # each library has its own
        told = str(trouble).partition("\n")[0]
        raise UnreadableInput(
            f"cannot be read ({told})",
            str(path),
            "write arrays by name: np.savez(FILE, ids=..., mask=...)",
        ) from None
    if not isinstance(held, Mapping):
        raise UnreadableInput(
            "it holds no arrays by name",
            str(path),
            "write arrays by name: np.savez(FILE, ids=..., mask=...)",
        )
    for name in held:
        if name not in NAMES:
            raise BadUsage(
                f"unknown field {name!r}",
                str(path),
                did_you_mean(str(name), NAMES) or f"known: {', '.join(NAMES)}",
            )
    return Batch(**{name: plain(name, value) for name, value in held.items()})


def _arrays(path: Path) -> Any:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as saved:
            return {name: saved[name] for name in saved.files}
    if path.suffix == ".pt":
        import torch

        return torch.load(path, map_location="cpu", weights_only=True)
    from safetensors.torch import load_file

    return load_file(path)


def from_folder(folder: Path, option: str) -> tuple[Any, Any]:
    """A causal language model and its tokenizer (None without one) from a folder of transformers; nothing is downloaded."""
    if not folder.is_dir():
        raise UnreadableInput(
            "no such file or folder",
            str(folder),
            f"{option} takes a folder that save_pretrained wrote",
        )
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
        from transformers.utils import logging
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"{option} needs {error.name}", str(folder), "pip install 'klinic[torch]'"
        ) from error
    if not sys.stderr.isatty():
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    except Exception as trouble:
        told = str(trouble).partition("\n")[0]
        raise UnreadableInput(
            f"cannot be read ({told})",
            str(folder),
            f"{option} takes a folder that save_pretrained wrote",
        ) from None
    if not any(folder.glob("*token*")):
        return model, None
    try:
        return model, AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as trouble:
        told = str(trouble).partition("\n")[0]
        raise UnreadableInput(
            f"its tokenizer cannot be read ({told})",
            str(folder),
            f"{option} takes a folder that save_pretrained wrote",
        ) from None
