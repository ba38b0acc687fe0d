"""The public part of a benchmark: some events without anything that reveals what made their hits.

:mod:`~collidium.datasets.publishing.public_part` defines it. Withheld values are not written at all: their
lists are null. The truth has the same events in the same order with all values, to score against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.public_order import in_public_order
from collidium.datasets.publishing.public_part import withheld_columns, without_truth
from collidium.datasets.publishing.survey import SurveyedConfig
from collidium.datasets.reading.dataset import refuse_missing
from collidium.datasets.reading.shards import EventIds, EventTable, blocks_of
from collidium.datasets.schemas import without_notes
from collidium.datasets.writing import ShardWriter, folder

#: Called with the events that were written, and all that will be.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Withheld:
    """A dataset in two parts, each a directory in the hosted layout."""

    events: EventRange
    public: Path
    truth: Path
    #: What is withheld, by table.
    columns: Mapping[str, Sequence[str]]


def withhold(
    config: SurveyedConfig,
    events: EventRange,
    *,
    public: Path,
    truth: Path,
    progress: Progress | None = None,
) -> Withheld:
    """Write the public part of a config below ``public``, and all of ``events`` below ``truth``.

    Shards hold as many events as the largest had before. Raises UnusableDataset where a table lacks an event
    of the range, or truth is withheld there already. Blocks; memory is bounded by blocks of events.
    """
    tables = {name: EventTable(name, [s.path for s in shards]) for name, shards in config.tables.items()}
    for table in tables.values():
        refuse_missing(table, events)
    size = max(len(shard.events) for shards in config.tables.values() for shard in shards)
    writing = _Writing(config.name, tables, size)
    total = len(events) + len(config.events)
    count = _counter(progress, total)
    writing.truth(events, truth, count)
    writing.public(config.events, events, truth, public, count)
    columns = {name: withheld_columns(name, table.schema.names) for name, table in tables.items()}
    return Withheld(events, public, truth, columns)


@dataclass(frozen=True, slots=True)
class _Writing:
    config: str
    tables: Mapping[str, EventTable]
    events_per_shard: int

    def truth(self, events: EventRange, directory: Path, count: Callable[[int], None]) -> None:
        """Write the events with everything, in the order in which they are public."""
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(self._writer(directory, name, table.schema))
                for name, table in self.tables.items()
            }
            ids = np.arange(events.start, events.stop)
            for block, rows in blocks_of(self.tables, ids):
                for name, table in in_public_order(rows).items():
                    writers[name].write(table)
                count(len(block))

    def public(
        self,
        ids: EventIds,
        events: EventRange,
        truth: Path,
        directory: Path,
        count: Callable[[int], None],
    ) -> None:
        """Write all events; those of the range as the truth has them, without what is withheld."""
        closed = {name: EventTable(name, self._shards(truth, name)) for name in self.tables}
        first, stop = np.searchsorted(ids, [events.start, events.stop])
        parts = [(self.tables, ids[:first]), (closed, ids[first:stop]), (self.tables, ids[stop:])]
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(self._writer(directory, name, table.schema))
                for name, table in self.tables.items()
            }
            for tables, part in parts:
                for block, rows in blocks_of(tables, part):
                    for name, table in rows.items():
                        writers[name].write(without_truth(name, table) if tables is closed else table)
                    count(len(block))
                for writer in writers.values():
                    writer.end_group()

    def _writer(self, directory: Path, table: str, schema: pa.Schema) -> ShardWriter:
        return ShardWriter(
            directory / folder(self.config, table),
            "train",
            without_notes(schema),
            events_per_shard=self.events_per_shard,
        )

    def _shards(self, directory: Path, table: str) -> list[Path]:
        return sorted((directory / folder(self.config, table)).glob("*.parquet"))


def _counter(progress: Progress | None, total: int) -> Callable[[int], None]:
    done = 0

    def count(events: int) -> None:
        nonlocal done
        done += events
        if progress:
            progress(done, total)

    return count
