"""The suite of an installed task, and the events that tasks are checked on."""

from __future__ import annotations

from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
from collidium import plugins
from collidium.contracts.task import Task
from collidium.errors import InvalidInput, NotFound
from collidium.testing.task_suite.checks import CHECKS
from collidium.testing.task_suite.subject import Subject
from collidium.testing.task_suite.suite import Suite
from collections.abc import Iterable
from itertools import count, takewhile
from typing import Final
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset


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


#: More events make checking slower, not better.
MOST_EVENTS: Final = 5


def sample_tables(
    task: Task, directory: Path | None = None, config: str | None = None
) -> dict[str, pa.Table]:
    """The first events of a dataset, without gap: the tables that the task names as truth and inputs.

    Without a ``directory`` they are the five events that come with the platform. Raises UnusableDataset
    where tables or events are missing.
    """
    names = list(dict.fromkeys([*task.card.truth_sources, *task.card.inputs]))
    dataset = Dataset(directory or EVENTS_DIRECTORY, config)
    try:
        ids = [{int(event) for event in dataset.table(name).event_ids} for name in names]
    except UnusableDataset as error:
        if directory is None:
            advice = "the events that come with the platform do not do for this task: name others"
            raise UnusableDataset(f"{advice} ({error})") from error
        raise
    events = _first(set.intersection(*ids) if ids else set())
    blocks = [tables for _, tables in dataset.read(names, events)]
    return {name: pa.concat_tables([tables[name] for tables in blocks]) for name in names}


def _first(events: Iterable[int]) -> EventRange:
    there = set(events)
    if not there:
        raise UnusableDataset("no event is in all tables that the task names")
    start = min(there)
    stop = start + len(list(takewhile(there.__contains__, count(start))))
    return EventRange(start, min(stop, start + MOST_EVENTS))
