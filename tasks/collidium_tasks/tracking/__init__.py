"""The tracking benchmark: group the hits of an event into the tracks of its charged particles."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking.task import TrackingTask

__all__ = ["TrackingTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingTask()]
