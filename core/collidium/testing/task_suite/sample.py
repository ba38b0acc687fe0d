"""Events to check a task on: the five that come with the platform, or those of a directory."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, takewhile
from pathlib import Path
from typing import Final

import pyarrow as pa

from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset

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
