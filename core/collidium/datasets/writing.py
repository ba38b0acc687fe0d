"""Writes the tables of a dataset as parquet shards, in bounded memory.

Row groups contain whole events. Floats are encoded as byte streams, ids within an event as deltas and other
integers by a dictionary, all compressed by zstd. This takes two thirds of the size of pyarrow's defaults and
a third of the time to decode. Only ``event_id`` has statistics, by which readers find events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.tables import is_list
from collidium.datasets.schemas import SCHEMAS, folder, shard_name

#: Maximum bytes of a row group in memory, unless a single event has more.
GROUP_BYTES: Final = 64 * 1024**2
#: Integer columns whose lists are mostly ascending.
_ASCENDING: Final = frozenset({"constituents", "hit_id", "hit_ids", "jet_id", "track_id"})


def write_dataset(
    directory: Path, config: str, blocks: Iterable[Mapping[str, pa.Table]], *, events_per_shard: int
) -> dict[str, list[Path]]:
    """Write tables in the hosted layout below ``directory``; returns the shards of each.

    Each block has the same events of every table, and ``event_id`` is ascending within and across blocks.
    Tables of :data:`~collidium.datasets.schemas.SCHEMAS` get its columns and types, others those of the first
    block. Raises ValueError for other input, and leaves no shards then.
    """
    writers: dict[str, ShardWriter] = {}
    with ExitStack() as stack:
        for block in blocks:
            for table, events in block.items():
                if table not in writers:
                    schema = SCHEMAS.get(table, events.schema)
                    writer = ShardWriter(
                        directory / folder(config, table), "train", schema, events_per_shard=events_per_shard
                    )
                    writers[table] = stack.enter_context(writer)
                writers[table].write(events)
    return {table: writer.paths for table, writer in writers.items()}


class ShardWriter:
    """Writes a table to shards of ``events_per_shard`` events each; the last may have fewer::

        with ShardWriter(directory, "tracker_hits", schema, events_per_shard=1000) as writer:
            for events in blocks:
                writer.write(events)
        writer.paths  # tracker_hits-00000-of-00002.parquet, ...

    The files appear at the end of the ``with`` block, and only if it does not raise.
    """

    def __init__(self, directory: Path, stem: str, schema: pa.Schema, *, events_per_shard: int) -> None:
        """``directory`` is created if necessary. Columns get the names and types of ``schema``."""
        if events_per_shard < 1:
            raise ValueError(f"a shard holds at least one event, not {events_per_shard}")
        self.paths: list[Path] = []
        self._directory = directory
        self._stem = stem
        self._schema = schema
        self._events_per_shard = events_per_shard
        self._partial: list[Path] = []
        self._file: ParquetFile | None = None
        self._rows = 0
        self._last_event = -1

    def __enter__(self) -> ShardWriter:
        self._directory.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and not self._partial:
                self._begin()  # a table without events has one empty shard
            self._end()
            if kind is None:
                self._publish()
        finally:
            for path in self._partial:
                path.unlink(missing_ok=True)

    def write(self, events: pa.Table) -> None:
        """Add events in ascending order. Raises ValueError for other columns or types."""
        table = self._checked(events)
        while table.num_rows:
            file = self._file or self._begin()
            taken = min(table.num_rows, self._events_per_shard - self._rows)
            file.write(table.slice(0, taken))
            self._rows += taken
            table = table.slice(taken)
            if self._rows == self._events_per_shard:
                self._end()

    def end_group(self) -> None:
        """End the current row group."""
        if self._file is not None:
            self._file.end_group()

    def _begin(self) -> ParquetFile:
        path = self._directory / f"{self._stem}-{len(self._partial):05}.partial"
        self._partial.append(path)
        self._file = ParquetFile(path, self._schema)
        self._rows = 0
        return self._file

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _publish(self) -> None:
        count = len(self._partial)
        for number, path in enumerate(self._partial):
            place = self._directory / shard_name(number, count, self._stem)
            path.replace(place)
            self.paths.append(place)

    def _checked(self, events: pa.Table) -> pa.Table:
        missing = [name for name in self._schema.names if name not in events.column_names]
        if missing or len(events.column_names) != len(self._schema.names):
            raise ValueError(
                f"{self._stem}: columns are {', '.join(events.column_names)}, "
                f"not {', '.join(self._schema.names)}"
            )
        table = events.select(self._schema.names).cast(self._schema)
        ids = np.asarray(table.column("event_id")).astype(np.int64)
        if len(ids) and (ids[0] <= self._last_event or np.any(np.diff(ids) <= 0)):
            raise ValueError(f"{self._stem}: events must be ascending and unique (last: {self._last_event})")
        self._last_event = int(ids[-1]) if len(ids) else self._last_event
        return table


class ParquetFile:
    """A parquet file to which whole events are appended, with the module's encodings."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._waiting: list[pa.Table] = []
        self._bytes = 0
        self._writer = _open(path, schema)

    def write(self, events: pa.Table) -> None:
        """Add rows with the file's schema."""
        step = max(1, int(GROUP_BYTES / max(events.nbytes / max(events.num_rows, 1), 1)))
        for start in range(0, events.num_rows, step):
            rows = events.slice(start, step)
            if self._bytes + rows.nbytes > GROUP_BYTES:
                self.end_group()
            self._waiting.append(rows)
            self._bytes += rows.nbytes

    def end_group(self) -> None:
        """End the current row group."""
        if self._waiting:
            group = pa.concat_tables(self._waiting)
            self._writer.write_table(group, row_group_size=group.num_rows)
        self._waiting = []
        self._bytes = 0

    def close(self) -> None:
        try:
            self.end_group()
        finally:
            self._writer.close()


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    encodings = {leaf: encoding for leaf, kind in leaves if (encoding := _encoding(leaf, kind))}
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=[leaf for leaf, _ in leaves if leaf not in encodings],  # type: ignore[arg-type]  # the stubs know booleans only
        column_encoding=encodings,
        write_statistics=["event_id"],
    )


def _encoding(leaf: str, kind: pa.DataType) -> str | None:
    """The encoding of a column; None stands for a dictionary."""
    if pa.types.is_floating(kind) and kind.bit_width >= 32:
        return "BYTE_STREAM_SPLIT"
    if pa.types.is_integer(kind) and leaf.partition(".")[0] in _ASCENDING:
        return "DELTA_BINARY_PACKED"
    return None


def _leaves(path: str, kind: Any) -> Iterator[tuple[str, pa.DataType]]:
    """The leaf columns of a field in a parquet file, with their types."""
    if is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, kind
