"""The public part of a benchmark: some events without anything that reveals what made their hits.

:mod:`~collidium.datasets.publishing.public_part` defines it. Withheld values are not written at all: their
lists are null. The truth has the same events in the same order with all values, to score against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
    done, total = 0, len(events) + len(config.events)

    @contextmanager
    def writers(directory: Path) -> Iterator[dict[str, ShardWriter]]:
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(
                    ShardWriter(
                        directory / folder(config.name, name),
                        "train",
                        without_notes(table.schema),
                        events_per_shard=size,
                    )
                )
                for name, table in tables.items()
            }

    def count(block: EventIds) -> None:
        nonlocal done
        done += len(block)
        if progress:
            progress(done, total)

    with writers(truth) as complete:  # with everything, in the order in which it is public
        for block, rows in blocks_of(tables, np.arange(events.start, events.stop)):
            for name, piece in in_public_order(rows).items():
                complete[name].write(piece)
            count(block)
    closed = {
        name: EventTable(name, sorted((truth / folder(config.name, name)).glob("*.parquet")))
        for name in tables
    }
    first, stop = np.searchsorted(config.events, [events.start, events.stop])
    with writers(public) as shown:  # events of the range as the truth has them
        for source, ids in (
            (tables, config.events[:first]),
            (closed, config.events[first:stop]),
            (tables, config.events[stop:]),
        ):
            for block, rows in blocks_of(source, ids):
                for name, piece in rows.items():
                    shown[name].write(without_truth(name, piece) if source is closed else piece)
                count(block)
            for writer in shown.values():
                writer.end_group()
    columns = {name: withheld_columns(name, table.schema.names) for name, table in tables.items()}
    return Withheld(events, public, truth, columns)
