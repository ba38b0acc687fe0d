"""The conformance suite of benchmark tasks: named promises, each checked on a task and a few events.

Run it in three ways::

    collidium task check NAME                          # an installed task, in a table
    pytest --collidium-task NAME                       # the same as tests
    check_task(MyTask(), tables)                       # collidium.testing.conformance, in your tests

:data:`~collidium.testing.task_suite.checks.CHECKS` lists the promises. Hostile predictions are generated
by hypothesis, which must be installed; pytest is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from collidium import plugins
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import InvalidInput, NotFound, UnusableDataset
from collidium.testing.task_suite.checks import CHECKS
from collidium.testing.task_suite.suite import Outcome, Subject, Suite

__all__ = ["CHECKS", "Outcome", "Subject", "Suite", "sample_tables"]


def installed_suite(
    name: str,
    *,
    directory: Path | None = None,
    config: str | None = None,
    predictions: Path | None = None,
) -> Suite:
    """The suite of an installed task on the first events of a dataset.

    ``directory`` is the dataset, by default the built-in events; ``predictions`` is a parquet file of valid
    predictions, for a task without baseline. Raises NotFound, UnusableDataset and InvalidInput.
    """
    task = _installed(name)
    answer = None if predictions is None else _read(predictions)
    return Suite(Subject(task, sample_tables(task, directory, config), answer), CHECKS)


def _installed(name: str) -> Task:
    tasks = plugins.load().tasks()
    if name not in tasks.things:
        known = ", ".join(sorted(tasks.things)) or "none"
        failed = "".join(f"; {failure}" for failure in tasks.failures)
        raise NotFound(f"no installed plugin provides a task {name!r} (installed: {known}){failed}")
    return tasks.get(name)


def _read(predictions: Path) -> pa.Table:
    try:
        return pq.read_table(predictions)
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"{predictions} cannot be read as parquet: {error}") from error


#: More events make checks slower, not better.
MAX_EVENTS: Final = 5


def sample_tables(
    task: Task, directory: Path | None = None, config: str | None = None
) -> dict[str, pa.Table]:
    """The first events of a dataset, with consecutive ids: the tables that the task's card names.

    Parameters
    ----------
    task : Task
        The task.
    directory : Path, optional
        The dataset; default: the five built-in events.
    config : str, optional
        Its config; default: the only one.

    Returns
    -------
    dict of str to pyarrow.Table
        The card's ``truth_sources`` and ``inputs``, one row per event.

    Raises
    ------
    UnusableDataset
        If tables or events are missing.
    """
    names = list(dict.fromkeys([*task.card.truth_sources, *task.card.inputs]))
    dataset = Dataset(directory or EVENTS_DIRECTORY, config)
    try:
        ids = [{int(event) for event in dataset.table(name).event_ids} for name in names]
    except UnusableDataset as error:
        if directory is None:
            advice = "the built-in events lack tables of this task: name a dataset"
            raise UnusableDataset(f"{advice} ({error})") from error
        raise
    events = _first(set.intersection(*ids) if ids else set())
    blocks = [tables for _, tables in dataset.read(names, events)]
    return {name: pa.concat_tables([tables[name] for tables in blocks]) for name in names}


def _first(events: Iterable[int]) -> EventRange:
    available = set(events)
    if not available:
        raise UnusableDataset("no event is in all tables that the task names")
    start = min(available)
    stop = start + len(list(takewhile(available.__contains__, count(start))))
    return EventRange(start, min(stop, start + MAX_EVENTS))
