"""Collidium: the open platform for particle-physics machine learning."""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.4.0"

if TYPE_CHECKING:
    from collidium.client.local_scoring import score as score


def __getattr__(name: str) -> object:
    if name == "score":  # it needs pyarrow, which most callers do not
        return import_module("collidium.client.local_scoring").score
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
