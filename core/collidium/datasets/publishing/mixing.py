"""Mixes the events of several channels into one dataset, in random order with new ids.

Only the table ``channels`` records the channel of an event. It is truth, and is withheld like other truth
when the mix is published. Sources with different columns or types are rejected, because these would reveal
the channel. It is not checked that one pipeline made all sources, with equal beams and detectors.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc as ipc

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.blinding import CHANNELS
from collidium.datasets.publishing.mixing_sources import EVENT_ID, MixSource, matched, pileup_of, sources_of
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.schemas import events_per_shard, folder
from collidium.datasets.writing import ShardWriter
from collidium.errors import InvalidInput
from collidium.files.held import work_directory

#: Target size of an event range, all tables together: a range is sorted in memory.
RANGE_BYTES: Final = 128 * 1024**2
#: Maximum number of ranges: each has an open file per table.
MAX_RANGES: Final = 64
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}_pu\d{1,4}")
_CHANNELS_SCHEMA: Final = pa.schema([EVENT_ID, pa.field("channel", pa.list_(pa.string()))])
_MAX_EVENTS: Final = 2**32


class _ExternalSort:
    """Sorts events by id in bounded memory, in files of a directory; a context manager."""

    def __init__(self, directory: Path, events: EventRange, size_bytes: float) -> None:
        """``events`` are all events to sort, with about ``size_bytes`` in all tables together."""
        self._directory = directory
        self._start = events.start
        self._ranges = int(np.clip(ceil(size_bytes / RANGE_BYTES), 1, min(MAX_RANGES, len(events))))
        self._step = ceil(len(events) / self._ranges)
        self._files = ExitStack()
        self._writers: dict[tuple[int, str], ipc.RecordBatchStreamWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """Add events. Each table has the same ones in the same order."""
        ids = np.asarray(next(iter(tables.values())).column("event_id")).astype(np.int64)
        ranges = (ids - self._start) // self._step
        for number in np.unique(ranges).tolist():
            rows = np.flatnonzero(ranges == number)
            for name, table in tables.items():
                self._writer(number, name, table.schema).write_table(table.take(rows))

    def blocks(self) -> Iterator[dict[str, pa.Table]]:
        """Yield all events in order of their ids, by blocks. Can be called once."""
        self._files.close()
        names = list(dict.fromkeys(name for _, name in self._writers))
        for number in range(self._ranges):
            if any((number, name) in self._writers for name in names):
                yield {name: self._sorted(self._path(number, name)) for name in names}

    def _sorted(self, path: Path) -> pa.Table:
        with pa.OSFile(str(path), "rb") as file, ipc.open_stream(file) as stream:
            table = stream.read_all()
        path.unlink()
        return table.sort_by("event_id")

    def _writer(self, number: int, name: str, schema: pa.Schema) -> ipc.RecordBatchStreamWriter:
        if (number, name) not in self._writers:
            writer = ipc.new_stream(str(self._path(number, name)), schema)
            self._writers[number, name] = self._files.enter_context(writer)
        return self._writers[number, name]

    def _path(self, number: int, name: str) -> Path:
        return self._directory / f"{number:03}-{name}.arrow"


@dataclass(frozen=True, slots=True)
class Mixing:
    """The sources and options of a mix. Raises InvalidInput for invalid options."""

    #: Datasets; the name of a config before ``_pu`` is its channel.
    directories: Sequence[Path]
    #: ``<name>_pu<pileup>``.
    config: str
    #: Directory to create.
    output: Path
    first_event: int = 0
    #: Seed of the order, random if None. It reveals the channels.
    seed: int | None = None
    #: Signal channels, together ``signal_percent`` of the mix in equal parts, with the same distribution of
    #: visible energies as the background. If empty, all events are mixed.
    signals: Sequence[str] = ()
    signal_percent: float = 1.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.config):
            raise InvalidInput(f"{self.config}: a mix is called <name>_pu<pileup>, for example anomaly_pu0")
        if self.output.exists():
            raise InvalidInput(f"{self.output} exists already: choose another directory, or delete it")
        if not 0 < self.signal_percent < 100:
            raise InvalidInput(
                f"signal must be above 0 and below 100% of a mix, not {self.signal_percent:g}%"
            )
        if not 0 <= self.first_event < _MAX_EVENTS:
            raise InvalidInput(f"the first event must be 0 to {_MAX_EVENTS - 1}, not {self.first_event}")


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mix that was written."""

    directory: Path
    config: str
    events: EventRange
    #: Channel -> number of events, which is not published either.
    channels: Mapping[str, int]


def mix(mixing: Mixing, report: ReportProgress | None = None) -> Mixed:
    """Write the mix to ``mixing.output``, readable only by its owner. Blocks. Leaves nothing after an error.

    ``report`` is called in the steps ``checking`` (bytes) and ``mixing`` (events).

    Raises UnusableDataset with all problems of the sources and all differences between them.
    """
    report = report or (lambda *_: None)
    ids = EventRange(mixing.first_event, _MAX_EVENTS)
    sources = sources_of(mixing.directories, mixing.config, ids, report)
    random = np.random.default_rng(secrets.randbits(128) if mixing.seed is None else mixing.seed)
    if mixing.signals:
        sources = matched(sources, mixing.signals, mixing.signal_percent, random)
    work = mixing.output.absolute().with_name(f".{mixing.output.name}.work")
    with work_directory(work) as scratch:
        made = _write(mixing, sources, random, scratch, report)
        _publish(made.directory, mixing.output)
    return Mixed(mixing.output, made.config, made.events, made.channels)


def _publish(made: Path, output: Path) -> None:
    try:
        made.rename(output)
    except OSError:
        if output.exists():
            raise InvalidInput(f"{output} was created by another process at the same time") from None
        raise


# -- writing --------------------------------------------------------------------------------------------


def _write(
    mixing: Mixing,
    sources: Sequence[MixSource],
    random: np.random.Generator,
    scratch: Path,
    report: ReportProgress,
) -> Mixed:
    counts = [len(source.events) for source in sources]
    events = EventRange(mixing.first_event, mixing.first_event + sum(counts))
    ids = events.start + random.permutation(len(events))
    names = np.repeat([source.channel for source in sources], counts)[np.argsort(ids)]
    directory = scratch / "mix"
    directory.mkdir(mode=0o700)
    with _ExternalSort(scratch, events, sum(source.bytes for source in sources)) as sorting:
        for done, tables in _renumbered(sources, ids):
            sorting.add(tables)
            report("mixing", done, len(events))
        with ExitStack() as stack:
            writers = {
                name: stack.enter_context(_writer(mixing, directory, name, schema))
                for name, schema in {**sources[0].schemas, CHANNELS: _CHANNELS_SCHEMA}.items()
            }
            for tables in sorting.blocks():
                for name, table in {**tables, CHANNELS: _channels_of(tables, events, names)}.items():
                    writers[name].write(table)
    channels = {source.channel: count for source, count in zip(sources, counts, strict=True)}
    return Mixed(directory, mixing.config, events, channels)


def _writer(mixing: Mixing, directory: Path, table: str, schema: pa.Schema) -> ShardWriter:
    size = events_per_shard(pileup_of(mixing.config))
    return ShardWriter(directory / folder(mixing.config, table), "train", schema, events_per_shard=size)


def _channels_of(tables: Mapping[str, pa.Table], events: EventRange, names: npt.NDArray[np.str_]) -> pa.Table:
    """The table ``channels`` of a block; ``names`` are the channels of all events in order."""
    ids = next(iter(tables.values())).column("event_id")
    channels = names[np.asarray(ids).astype(np.int64) - events.start]
    columns: dict[str, Any] = {"event_id": ids, "channel": [[str(name)] for name in channels]}
    return pa.table(columns, schema=_CHANNELS_SCHEMA)


def _renumbered(
    sources: Sequence[MixSource], ids: npt.NDArray[np.int64]
) -> Iterator[tuple[int, dict[str, pa.Table]]]:
    """Yield the events of all sources with new ids by blocks, with the number of events so far."""
    schemas = sources[0].schemas
    done = 0
    for source in sources:
        for count, tables in source.blocks():
            new = pa.array(ids[done : done + count], pa.uint32())
            done += count
            yield done, {name: _with_ids(table, new, schemas[name]) for name, table in tables.items()}


def _with_ids(table: pa.Table, ids: pa.Array[Any], schema: pa.Schema) -> pa.Table:
    columns: dict[str, Any] = {name: table.column(name) for name in schema.names}
    return pa.table(columns | {"event_id": ids}).cast(schema)
