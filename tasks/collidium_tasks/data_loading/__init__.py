"""The data loading benchmark: read a slice of a dataset, from disk and from its hub, as fast as can be."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.data_loading.task import DataLoadingTask

__all__ = ["DataLoadingTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """Return the task of this plugin."""
    return [DataLoadingTask()]
