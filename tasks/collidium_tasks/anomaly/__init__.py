"""The anomaly benchmark: find events beyond the Standard Model in a blinded mix."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.anomaly.task import AnomalyTask

__all__ = ["AnomalyTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [AnomalyTask()]
