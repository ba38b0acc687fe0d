"""The suite of a task that a plugin brings, by the task's name."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from collidium import plugins
from collidium.contracts.task import Task
from collidium.errors import InvalidInput, NotFound
from collidium.testing.task_suite.checks import CHECKS
from collidium.testing.task_suite.sample import sample_tables
from collidium.testing.task_suite.subject import Subject
from collidium.testing.task_suite.suite import Suite


def installed_suite(
    name: str,
    *,
    directory: Path | None = None,
    config: str | None = None,
    predictions: Path | None = None,
) -> Suite:
    """The checks of an installed task on the first events of ``directory``.

    Without one they are the events that come with the platform. ``predictions`` is a parquet file of valid
    ones, for a task that has no answer of its own. Raises NotFound, UnusableDataset and InvalidInput.
    """
    task = _installed(name)
    answer = None if predictions is None else _read(predictions)
    return Suite(Subject(task, sample_tables(task, directory, config), answer), CHECKS)


def _installed(name: str) -> Task:
    tasks = plugins.load().tasks()
    if name not in tasks.things:
        known = ", ".join(sorted(tasks.things)) or "none"
        failed = "".join(f"; {failure}" for failure in tasks.failures)
        raise NotFound(f"no installed plugin brings a task {name!r} (installed: {known}){failed}")
    return tasks.get(name)


def _read(predictions: Path) -> pa.Table:
    try:
        return pq.read_table(predictions)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{predictions} cannot be read as parquet: {error}") from error
