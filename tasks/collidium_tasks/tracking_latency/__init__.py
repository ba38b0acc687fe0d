"""The tracking benchmark for fast methods: events per second, for those that find half of the tracks."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking_latency.task import TrackingLatencyTask

__all__ = ["TrackingLatencyTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [TrackingLatencyTask()]
