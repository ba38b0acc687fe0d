"""Catalogues: the configs, tables and shards of a dataset on a hub or in a directory.

They read only the footers of shards: a few kB of files that may have gigabytes.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.cards import CARD
from collidium.datasets.reading.dataset import parquet_files
from collidium.datasets.reading.shards import parquet_errors
from collidium.errors import UnusableDataset
from collidium.files import durable
from collidium.hub.reader import NoRanges

if TYPE_CHECKING:
    from collidium.hub.download_store import DownloadStore
    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Size of the first request for a footer; most footers are smaller.
TAIL_BYTES: Final = 64 * 1024
_MAX_TAIL_BYTES: Final = 64 * 1024**2
#: A file ends with the length of its footer and the magic bytes.
_ENDING: Final = 8
_MAGIC: Final = b"PAR1"

#: Footers fetched concurrently.
_PARALLEL: Final = 8
#: Only the beginning of a card is read: it contains the front matter.
_CARD_BYTES: Final = 1024**2


@dataclass(frozen=True, slots=True)
class ShardFooter:
    """The relevant part of a parquet footer."""

    #: Number of events.
    rows: int
    #: Lowest and highest event id; None if the shard is empty or has no statistics.
    first: int | None
    last: int | None
    #: Column name as stored -> type.
    columns: dict[str, str]

    @classmethod
    def of(cls, metadata: pq.FileMetaData) -> Self:
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        ends = [_ends(group) for group in groups if group.num_rows]
        known = [end for end in ends if end is not None]
        complete = bool(known) and len(known) == len(ends)
        schema = metadata.schema.to_arrow_schema()
        return cls(
            rows=metadata.num_rows,
            first=min(first for first, _ in known) if complete else None,
            last=max(last for _, last in known) if complete else None,
            columns={field.name: str(field.type) for field in schema},
        )

    def may_hold(self, events: EventRange) -> bool:
        """Whether the shard may contain events of the range."""
        if self.first is None or self.last is None:
            return self.rows > 0
        return self.first < events.stop and self.last >= events.start


def _ends(group: Any) -> tuple[int, int] | None:
    """The lowest and the highest event id of a row group, by its statistics."""
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == "event_id":
            found = column.statistics
            if found is None or not found.has_min_max or not isinstance(found.min, int):
                return None
            return found.min, found.max
    return None


def _read_footer(file: Path | io.BytesIO, name: str) -> ShardFooter:
    """Raises UnusableDataset for an invalid file."""
    with parquet_errors(name):
        return ShardFooter.of(pq.read_metadata(file))


def fetch_tail(
    hub: HubReader, repository: Repository, file: HubFile, maximum: int = _MAX_TAIL_BYTES
) -> bytes:
    """Fetch the end of a shard with its whole footer.

    Raises UnusableDataset for an invalid file or a footer of more than ``maximum`` bytes, and what
    :meth:`HubReader.read_range` raises.
    """
    length = min(TAIL_BYTES, file.size)
    if length < _ENDING + len(_MAGIC):
        raise UnusableDataset(f"{file.path}: is not a parquet file")
    address = repository.address(file.path)
    tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    length = int.from_bytes(tail[-_ENDING : -len(_MAGIC)], "little") + _ENDING
    if tail[-len(_MAGIC) :] != _MAGIC or length > min(file.size, maximum):
        raise UnusableDataset(f"{file.path}: is not a parquet file")
    if length > len(tail):
        tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    return tail


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A dataset config. Its name is empty for tables that lie directly in the dataset's directory."""

    config: str
    tables: tuple[str, ...]
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A file of a table. Events are None if its footer is not available or lacks statistics."""

    path: str
    bytes: int
    events: int | None
    first_event: int | None
    last_event: int | None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table of a config. ``columns`` maps names as stored to types."""

    config: str
    table: str
    bytes: int
    events: int | None
    first_event: int | None
    last_event: int | None
    columns: Mapping[str, str]
    shards: tuple[ShardEntry, ...]


class Catalogue(ABC):
    """The parquet files of a dataset: ``sizes`` maps their paths to bytes."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    @abstractmethod
    def footers(self, paths: Sequence[str]) -> list[ShardFooter | None]:
        """Return the footer of each file; None if reading it would need the whole file."""

    @abstractmethod
    def card(self) -> str:
        """Return the dataset's card; empty if there is none."""

    def configs(self) -> list[ConfigEntry]:
        """Return the configs, sorted by name, without opening files."""
        found = []
        for config, tables in layout.configs(self.sizes).items():
            paths = [path for table in tables for path in self.shards(table, config)]
            found.append(ConfigEntry(config, tables, len(paths), sum(self.sizes[path] for path in paths)))
        return found

    def shards(self, table: str, config: str) -> list[str]:
        """Return the files of a table. Raises UnusableDataset that lists the existing tables."""
        owned = [path for path in self.sizes if config in layout.configs([path])]
        return layout.shards(owned, table, config or None)

    def tables(self, config: str | None, names: Sequence[str] | None = None) -> list[TableEntry]:
        """Describe tables of a config, by default all tables of the only config.

        Raises UnusableDataset that lists the existing configs or tables.
        """
        chosen = layout.choose(self.sizes, config)
        every = layout.configs(self.sizes)[chosen]
        return [self._table(chosen, name) for name in (every if names is None else names)]

    def _table(self, config: str, name: str) -> TableEntry:
        paths = self.shards(name, config)
        footers = self.footers(paths)
        shards = tuple(
            _shard(path, self.sizes[path], footer) for path, footer in zip(paths, footers, strict=True)
        )
        counts = [shard.events for shard in shards]
        known = [footer for footer in footers if footer is not None]
        first = [shard.first_event for shard in shards if shard.events != 0]
        last = [shard.last_event for shard in shards if shard.events != 0]
        return TableEntry(
            config=config,
            table=name,
            bytes=sum(shard.bytes for shard in shards),
            events=None if None in counts else sum(n for n in counts if n is not None),
            first_event=None if None in first else min((n for n in first if n is not None), default=None),
            last_event=None if None in last else max((n for n in last if n is not None), default=None),
            columns=known[0].columns if known else {},
            shards=shards,
        )

    def holding(self, table: str, config: str, events: EventRange | None) -> list[str]:
        """Return the files of a table that may contain events of the range.

        Raises UnusableDataset if the footers show that some of the events are missing.
        """
        paths = self.shards(table, config)
        if events is None:
            return paths
        footers = self.footers(paths)
        _check_coverage(table, events, footers)
        return [
            path
            for path, footer in zip(paths, footers, strict=True)
            if footer is None or footer.may_hold(events)
        ]


def _shard(path: str, size: int, footer: ShardFooter | None) -> ShardEntry:
    if footer is None:
        return ShardEntry(path, size, None, None, None)
    return ShardEntry(path, size, footer.rows, footer.first, footer.last)


def _check_coverage(table: str, events: EventRange, footers: Sequence[ShardFooter | None]) -> None:
    """Raise UnusableDataset if the ranges of all shards are known and some of the events are in none."""
    spans = []
    for footer in footers:
        if footer is None or (footer.rows and (footer.first is None or footer.last is None)):
            return
        if footer.first is not None and footer.last is not None:
            spans.append((footer.first, footer.last + 1))
    reached = events.start
    for start, stop in sorted(spans):
        if start > reached:
            break
        reached = max(reached, stop)
    if reached < events.stop:
        there = f"{min(spans)[0]} to {max(stop for _, stop in spans) - 1}" if spans else "none"
        missing = EventRange(reached, min([start for start, _ in spans if start > reached] + [events.stop]))
        lacking = f"{missing} are missing (available events: {there})"
        detail = f"table {table} has not all of the events {events}: {lacking}"
        raise UnusableDataset(
            detail, errors=[{"field": "events", "detail": detail}] if missing == events else ()
        )


class LocalCatalogue(Catalogue):
    """The files of a local directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__({path: (directory / path).stat().st_size for path in parquet_files(directory)})

    def footers(self, paths: Sequence[str]) -> list[ShardFooter | None]:
        files = [self._directory / path for path in paths]
        return [_read_footer(file, file.name) for file in files]

    def card(self) -> str:
        path = self._directory / CARD
        return path.read_bytes()[:_CARD_BYTES].decode(errors="replace") if path.is_file() else ""


class HubCatalogue(Catalogue):
    """The files of a repository. Footers and cards are cached with its downloaded files."""

    def __init__(self, hub: HubReader, repository: Repository, store: DownloadStore) -> None:
        self.repository = repository
        self._hub = hub
        self._store = store
        super().__init__(
            {path: file.size for path, file in repository.files.items() if path.endswith(".parquet")}
        )

    def footers(self, paths: Sequence[str]) -> list[ShardFooter | None]:
        with ThreadPoolExecutor(_PARALLEL, "collidium-footers") as threads:
            return list(threads.map(self._footer, paths))

    def card(self) -> str:
        file = self.repository.files.get(CARD)
        if file is None:
            return ""
        note = self._store.metadata / "cards" / f"{file.digest}.md"
        with suppress(OSError):
            return note.read_bytes().decode(errors="replace")
        address, stop = self.repository.address(CARD), min(file.size, _CARD_BYTES)
        content = self._hub.read_range(address, CARD, 0, stop)[0] if stop else b""
        card = content.decode(errors="replace")
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(note, card)
        return card

    def _footer(self, path: str) -> ShardFooter | None:
        file = self.repository.files[path]
        note = self._store.metadata / "footers" / f"{file.digest}.json"
        with suppress(OSError, ValueError, TypeError):  # absent, or written by another version
            return ShardFooter(**json.loads(note.read_text(encoding="utf-8")))
        if self._store.has(file):
            local = self._store.path(file)
            footer = _read_footer(local, local.name)
        else:
            try:
                tail = fetch_tail(self._hub, self.repository, file)
            except NoRanges:
                return None
            footer = _read_footer(io.BytesIO(tail), file.path)
        note.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(note, json.dumps(asdict(footer)))
        return footer
