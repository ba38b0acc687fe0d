"""Writes events of a dataset into one file for Phoenix, an event at a time, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.datasets.access import catalogue, download
from collidium.datasets.exporting import Exported, whole
from collidium.datasets.reading.dataset import Dataset
from collidium.errors import UnusableDataset
from collidium.event_display import phoenix
from collidium.event_display.tables import shown
from collidium.hub.downloads import Progress
from collidium.hub.sources import HubDataset

#: Bytes of a table that are in memory at once, unless one event has more.
_BLOCK_BYTES: Final = 8 * 1024**2


def export(
    place: Path | HubDataset,
    events: EventRange,
    file: Path,
    *,
    config: str | None = None,
    progress: Progress | None = None,
) -> Exported:
    """Write the events to ``file``, in place of one that is there; shards are fetched if need be.

    ``progress`` is called with the events written and the events in all. Raises what
    :func:`~collidium.datasets.download` raises, UnusableDataset for tables that cannot be read, and
    :class:`~collidium.datasets.NoRoom` when the disk is full.
    """
    chosen, names = _tables(place, config)
    fetched = download(place, chosen or config, names, events)
    dataset = Dataset(fetched.directory, chosen or config)
    with whole(file) as output:
        for number, (event_id, event) in enumerate(_events(dataset, names, events)):
            name = json.dumps(phoenix.name_of(event_id))
            text = f"{name}: {json.dumps(event, allow_nan=False)}"
            output.write(f"{',' if number else '{'}\n{text}".encode())
            if progress:
                progress(number + 1, len(events))
        output.write(b"\n}\n")
        size = output.tell()
    return Exported(file, chosen or config or "", fetched.revision, len(events), size)


def _tables(place: Path | HubDataset, config: str | None) -> tuple[str, list[str]]:
    """The config that is meant, and its tables that Phoenix draws. Raises UnusableDataset."""
    with catalogue(place) as found:
        configs = {entry.config: entry.tables for entry in found.configs()}
    meant = [name for name in configs if config in (None, name) or name == ""]
    if len(meant) != 1:
        there = ", ".join(configs) or "none"
        problem = f"there is no config {config}" if config else "there are several configs, or none"
        raise UnusableDataset(f"{problem}: choose one of: {there}")
    names = [table for table in phoenix.TABLES if table in configs[meant[0]]]
    if not names:
        raise UnusableDataset(f"there are none of the tables that are drawn: {', '.join(phoenix.TABLES)}")
    return meant[0], names


def _events(dataset: Dataset, names: list[str], events: EventRange) -> Iterator[tuple[int, dict[str, Any]]]:
    for block, tables in dataset.read(names, events, block_bytes=_BLOCK_BYTES):
        for row, event_id in enumerate(range(block.start, block.stop)):
            one = {name: shown(name, table.slice(row, 1)) for name, table in tables.items()}
            yield event_id, phoenix.event(one, event_id, {})
