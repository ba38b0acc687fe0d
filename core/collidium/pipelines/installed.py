"""The pipelines that plugins bring."""

from __future__ import annotations

from collections.abc import Sequence

from collidium import plugins
from collidium.contracts.pipeline import Pipeline
from collidium.plugins import Provided


def installed(blocked: Sequence[str] = ()) -> Provided[Pipeline]:
    """The pipelines of all plugins but those that are blocked."""
    return plugins.load(blocked).pipelines()
