"""Measures how fast events are loaded on this machine.

A loader is a function that takes a :class:`Reading` and returns its events::

    def load(reading: Reading) -> pa.Table:
        return pa.concat_tables([pq.read_table(path) for path in reading.shards])

It may return a table, an iterable of record batches or tables, or a mapping from column names to arrow or
NumPy values: one row per event, with all columns of the table, and no other events.

The clock runs until every returned byte has been read, so that data that is mapped into memory, or made on
demand, is loaded by then. The result is checked after the clock has stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any, cast

import numpy as np
import pyarrow as pa

from collidium.contracts.digest import event_digests
from collidium.datasets.schemas import canonical
from collidium.errors import CollidiumError
from collidium.runtime.progress import Progress

__all__ = ["Loaded", "Loader", "Measured", "Reading", "WrongReading", "measure"]

#: Event -> its digest by :func:`~collidium.contracts.digest.event_digests`.
Digests = Mapping[int, int]


class WrongReading(CollidiumError):
    """The loader returned other data than the dataset has."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The times of several readings."""

    events: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def events_per_second(self) -> float:
        return self.events / self.median


def measure(
    loader: Loader, reading: Reading, expected: Digests, *, repeats: int, progress: Progress | None = None
) -> Measured:
    """Time ``repeats`` consecutive readings, each of which must return the ``expected`` events.

    Raises WrongReading, and any error of the loader.
    """
    seconds = []
    for number in range(repeats):
        begin = perf_counter()
        table = _table(loader(reading))
        _look_at(table)
        seconds.append(perf_counter() - begin)
        _compare(table, reading, expected)
        if progress:
            progress(number + 1, repeats)
    return Measured(len(reading.events), tuple(seconds))


def _table(loaded: Loaded) -> pa.Table:
    if isinstance(loaded, pa.Table):
        return loaded
    try:
        if isinstance(loaded, Mapping):
            return pa.Table.from_pydict(cast(dict[str, Any], dict(loaded)))
        if not isinstance(loaded, Iterable):
            raise TypeError(type(loaded).__name__)
        pieces = [
            pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece for piece in loaded
        ]
        return pa.concat_tables(pieces)
    except (pa.ArrowException, TypeError) as error:
        raise WrongReading(f"the result of the loader cannot be made an arrow table: {error}") from error


def _look_at(table: pa.Table) -> int:
    """Read every byte of a table once; the result has no meaning."""
    return sum(int(np.bitwise_xor.reduce(words)) for words in _words(table))


def _words(table: pa.Table) -> Iterator[np.ndarray[Any, Any]]:
    """The buffers of a table, each once even if columns and chunks share it."""
    seen = set()
    for column in table.columns:
        for buffer in (buffer for chunk in column.chunks for buffer in chunk.buffers()):
            if (
                buffer is not None
                and buffer.size >= 8
                and (place := (buffer.address, buffer.size)) not in seen
            ):
                seen.add(place)
                yield np.frombuffer(memoryview(buffer), np.uint64, buffer.size // 8)


def _compare(table: pa.Table, reading: Reading, expected: Digests) -> None:
    names = canonical(reading.table, table.column_names)
    if "event_id" not in names:
        raise WrongReading("the loader returned no column event_id")
    table = table.select(list(names.values())).rename_columns(list(names))
    try:
        events = np.asarray(table.column("event_id")).tolist()
        found = dict(zip(events, event_digests(table).tolist(), strict=True))
    except (ValueError, TypeError) as error:
        raise WrongReading(f"the loader returned no events of this dataset: {error}") from error
    if len(found) < len(events):
        raise WrongReading(
            f"the loader returned {len(events)} rows of {len(found)} events: each event is one row"
        )
    if found != expected:
        raise WrongReading(_difference(found, expected, list(names)))


def _difference(found: Digests, expected: Digests, columns: list[str]) -> str:
    wrong = {event for event in expected.keys() & found.keys() if found[event] != expected[event]}
    what = {
        "are missing": expected.keys() - found.keys(),
        "were not asked for": found.keys() - expected.keys(),
        f"are not as the dataset has them, in columns {', '.join(columns)}": wrong,
    }
    differences = [
        f"{len(events)} events {how}, for example {min(events)}" for how, events in what.items() if events
    ]
    return f"the loader returned other data than the dataset has: {'; '.join(differences)}"


#: One row per event: a table, pieces of one, or columns by name.
Loaded = pa.Table | Iterable[pa.Table | pa.RecordBatch] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """Events to read, and their location."""

    #: A local directory with the repository's layout; when streaming, the repository's address.
    source: str
    config: str
    table: str
    events: range
    #: Paths of the parquet files with the events, and maybe others; when streaming, addresses that support
    #: requests for ranges of bytes.
    shards: tuple[str, ...]
    #: Whether they are read over HTTP; the loader must then not cache them on this machine.
    streaming: bool
    #: The bearer token to send when streaming.
    token: str | None = field(default=None, repr=False)


#: Reads all columns of all events, and no others.
Loader = Callable[[Reading], Loaded]
