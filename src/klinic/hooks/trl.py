"""For TRL's GRPO trainer.

    callback = KlinicCallback(every=20, stop_on="stop")
    trainer = GRPOTrainer(..., callbacks=[callback])
    callback.attach(trainer)

Without ``attach`` it diagnoses what TRL logs; with it, it also logs what TRL 1.16 does not. transformers is imported only when the
callback is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klinic.hooks._trl_callback import KlinicCallback

__all__ = ["KlinicCallback"]


def __getattr__(name: str) -> Any:
    if name != "KlinicCallback":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from klinic.hooks._trl_callback import KlinicCallback
    except ModuleNotFoundError as error:
        if error.name != "transformers":
            raise
        from klinic.errors import MissingExtra

        raise MissingExtra(
            "KlinicCallback needs transformers", hint="pip install 'klinic[torch]'"
        ) from error
    return KlinicCallback
