"""Checks that memory grows in proportion to the block."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Block, EventRange
from collidium.testing.conformance.promise import promise
from collidium.testing.task_suite.subject import Subject

#: Rows of truth and predictions in the small block; the large one has four times as many.
_SMALL_ROWS: Final = 2_000
_TIMES: Final = 4
#: How much more memory four times the rows may take: less than the square, more than rounding up.
_GROWTH: Final = 6
#: Smaller amounts are not compared.
_LITTLE: Final = 1024**2


def memory_is_bounded_by_the_block(subject: Subject) -> None:
    """Scoring a block of four times the events takes about four times the memory, not more."""
    rows = subject.main.num_rows + sum(table.num_rows for table in subject.truth.values())
    copies = max(_SMALL_ROWS // max(rows, 1), 1)
    small, large = (_block(subject, copies * times) for times in (1, _TIMES))
    subject.task.score(small)  # caches do not count
    small_peak, large_peak = (_peak(lambda: subject.task.score(block)) for block in (small, large))  # noqa: B023
    promise(
        large_peak <= _GROWTH * max(small_peak, _LITTLE),
        f"scoring {copies * rows} rows takes {small_peak / 1024**2:.1f} MiB, and {_TIMES} times as many take "
        f"{large_peak / 1024**2:.1f} MiB: work event by event",
    )


def _block(subject: Subject, copies: int) -> Block:
    """Copies of the sample's events, with distinct ids."""
    first, last = subject.events[0], subject.events[-1]
    truth = {name: _repeated(table, copies, last - first + 1) for name, table in subject.truth.items()}
    predictions = _repeated(subject.main, copies, last - first + 1)
    return Block(EventRange(first, first + copies * (last - first + 1)), predictions, truth)


def _repeated(table: pa.Table, copies: int, step: int) -> pa.Table:
    kind = table.schema.field("event_id").type
    ids = np.asarray(table.column("event_id"), np.int64)
    events = np.concatenate([ids + number * step for number in range(copies)])
    repeated = pa.concat_tables([table] * copies).combine_chunks()
    place = table.column_names.index("event_id")
    return repeated.set_column(place, "event_id", pa.array(events, kind))


def _peak(work: Callable[[], object]) -> int:
    """Bytes that are in use at most while ``work`` runs, of Python, NumPy and Arrow."""
    pool, before = pa.proxy_memory_pool(pa.system_memory_pool()), pa.default_memory_pool()
    tracemalloc.start()
    pa.set_memory_pool(pool)
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
    finally:
        pa.set_memory_pool(before)
        tracemalloc.stop()
