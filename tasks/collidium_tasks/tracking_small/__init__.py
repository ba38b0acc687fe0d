"""The tracking benchmark for small methods: efficiency against the number of parameters."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking_small.task import TrackingSmallTask

__all__ = ["TrackingSmallTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingSmallTask()]
