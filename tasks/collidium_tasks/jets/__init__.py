"""The jets benchmark: tell jets of b quarks from those of c quarks and of light ones."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_tasks.jets.task import JetsTask

__all__ = ["JetsTask", "collidium_tasks"]


@hookimpl
def collidium_tasks() -> Sequence[Task]:
    """The one task of this plugin."""
    return [JetsTask()]
