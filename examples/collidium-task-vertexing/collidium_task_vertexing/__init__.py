"""The plugin: Collidium loads this module and asks it for tasks."""

from collidium.contracts.task import Task
from collidium.hookspecs import hookimpl
from collidium_task_vertexing.task import VertexingTask

__all__ = ["VertexingTask"]


@hookimpl
def collidium_tasks() -> list[Task]:
    return [VertexingTask()]
