"""Whether everybody can read a truth: in a public repository, or as that of events of the package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from collidium.contracts.task import Card, EventRange
from collidium.datasets import Dataset, HubDataset
from collidium.datasets.access import catalogue
from collidium.datasets.sample import PACKAGED
from collidium.errors import CollidiumError, UnusableDataset

#: Events that are compared with those of the package, which has fewer.
_COMPARED: Final = 50


def is_published(
    card: Card, place: Path | HubDataset, config: str | None, events: EventRange, cache: Path
) -> bool:
    """Return whether anybody else can read the truth that was imported from ``place``. Blocks.

    A repository is asked for without a token. A directory has events of the package if some of its first ones
    have the same content, whatever their ids are.
    """
    if isinstance(place, HubDataset):
        try:
            with catalogue(replace(place, token=""), cache, current=True):
                return True
        except CollidiumError:
            return False
    first = EventRange(events.start, min(events.stop, events.start + _COMPARED))
    own = set(_contents(Dataset(place, config), card.truth_sources, first))
    return any(own.intersection(_packaged(directory, card.truth_sources)) for directory in PACKAGED)


def _packaged(directory: Path, tables: Sequence[str]) -> Iterator[bytes]:
    if not all((directory / f"{name}.parquet").is_file() for name in tables):
        return
    dataset = Dataset(directory)
    ids = dataset.table(tables[0]).event_ids
    yield from _contents(dataset, tables, EventRange(int(min(ids)), int(max(ids)) + 1))


def _contents(dataset: Dataset, tables: Sequence[str], events: EventRange) -> Iterator[bytes]:
    """A hash of each event's values, of columns in order of their names."""
    try:
        for _, read in dataset.read(tuple(tables), events):
            rows = next(iter(read.values())).num_rows
            for row in range(rows):
                yield _hash_of([table.slice(row, 1) for table in read.values()])
    except UnusableDataset:  # the package lacks columns that this task needs
        return


def _hash_of(tables: Sequence[pa.Table]) -> bytes:
    digest = hashlib.sha256()
    for table in tables:
        for name in sorted(set(table.column_names) - {"event_id"}):
            digest.update(repr((name, table[name].to_pylist())).encode())
    return digest.digest()
