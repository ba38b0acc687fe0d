"""The same events of several tables, some at a time: for work on more events than fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from collidium.contracts.task import EventRange
from collidium.datasets.reading.shards import EventIds, EventTable

#: Bytes of all tables, as they are stored, that are worked on at once; many times as much is in memory.
BLOCK_BYTES: Final = 8 * 1024**2


def blocks_of(
    tables: Mapping[str, EventTable], ids: EventIds
) -> Iterator[tuple[EventIds, dict[str, pa.Table]]]:
    """The events ``ids``, in order, some at a time, of all tables."""
    size = sum(table.bytes_per_event for table in tables.values())
    step = max(1, int(BLOCK_BYTES / max(size, 1)))
    blocks = [ids[start : start + step] for start in range(0, len(ids), step)]
    ranges = [EventRange(int(block[0]), int(block[-1]) + 1) for block in blocks]
    streams = [table.read(ranges, batch_bytes=BLOCK_BYTES) for table in tables.values()]
    for block, *pieces in zip(blocks, *streams, strict=True):
        yield block, dict(zip(tables, pieces, strict=True))
