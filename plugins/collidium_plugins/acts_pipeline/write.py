"""Stage ``write``: the hosted tables, in shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from collidium.contracts.pipeline import TABLES
from collidium.datasets.schemas import SCHEMAS, events_per_shard
from collidium.datasets.writing import ShardWriter
from collidium_plugins.acts_pipeline import files
from collidium_plugins.acts_pipeline.order import Order
from collidium_plugins.acts_pipeline.phase import Phase
from collidium_plugins.acts_pipeline.reconstruct import RECONSTRUCTED
from collidium_plugins.acts_pipeline.simulate import DEPOSITS

#: The folder that each hosted table comes from.
SOURCES: Final = {**RECONSTRUCTED, "calo_hits": DEPOSITS}


class Write(Phase):
    """One table is one task."""

    name = "tables"

    def __init__(self, order: Order) -> None:
        self._order = order
        self._tables = list(SCHEMAS)
        for source in SOURCES.values():
            order.require(source)
        order.folder("written")  # of which order the tables are: their own folder holds nothing else

    @property
    def sizes(self) -> list[int]:
        return [self._order.events] * len(self._tables)

    def is_done(self, task: int) -> bool:
        shards = list((self._order.work / TABLES).glob(f"{self._tables[task]}-*.parquet"))
        return len(shards) == -(-self._order.events // events_per_shard(self._order.pileup))

    def do(self, task: int) -> None:
        table = self._tables[task]
        per_shard = events_per_shard(self._order.pileup)
        folder = self._order.work / TABLES
        with ShardWriter(folder, table, SCHEMAS[table], events_per_shard=per_shard) as writer:
            for events in self._chunks(table):
                writer.write(events)

    def _chunks(self, table: str) -> Iterator[pa.Table]:
        for chunk in self._order.chunks():
            yield files.read(self._order.chunk(SOURCES[table], chunk))


def phases(order: Order) -> list[Phase]:
    """What the stage does."""
    return [Write(order)]
