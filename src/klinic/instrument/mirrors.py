"""The same numbers to a tracker as well. The trackers' own libraries are imported only when one is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from klinic.errors import BadUsage, MissingExtra, did_you_mean


class Mirror(Protocol):
    """What is told every row."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Pass one row on."""

    def close(self) -> None:
        """Finish what this mirror began."""


class _TensorBoard:
    def __init__(self, folder: Path, config: Mapping[str, Any] | None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra(
                "TensorBoard is not installed", "mirror", "pip install 'klinic[torch]'"
            ) from error
        self._writer: Any = SummaryWriter(str(folder))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class _Wandb:
    """The active run of wandb's, else one of its own, called like the folder."""

    def __init__(self, folder: Path, config: Mapping[str, Any] | None) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtra("wandb is not installed", "mirror", "pip install wandb") from error
        self._own = wandb.run is None
        self._run: Any = wandb.run or wandb.init(
            name=folder.resolve().name, config=dict(config or {})
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({**values, "step": step})

    def close(self) -> None:
        if self._own:
            self._run.finish()


MIRRORS: dict[str, Callable[[Path, Mapping[str, Any] | None], Mirror]] = {
    "tensorboard": _TensorBoard,
    "wandb": _Wandb,
}


def mirror_named(name: str, folder: Path, config: Mapping[str, Any] | None) -> Mirror:
    """The tracker's writer. Raises BadUsage for an unknown name, MissingExtra where its library is not installed."""
    if name not in MIRRORS:
        raise BadUsage(
            f"unknown mirror {name!r}",
            "Recorder",
            did_you_mean(name, MIRRORS) or f"known: {', '.join(MIRRORS)}",
        )
    return MIRRORS[name](folder, config)
