"""The configs, tables and shards of a dataset, on a hub or in a directory.

What a shard holds is known by its footer alone: a few kB of a file that may have gigabytes.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.cards import CARD
from collidium.datasets.reading.dataset import parquet_files
from collidium.errors import UnusableDataset
from collidium.files import durable
from collidium.hub.reader import NoRanges

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from collidium.hub.download_store import DownloadStore
    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Bytes requested at first: most footers are shorter.
TAIL_BYTES: Final = 64 * 1024
#: No shard needs as much.
_MAXIMUM_TAIL_BYTES: Final = 64 * 1024**2
_ENDING: Final = 8
_MAGIC: Final = b"PAR1"

#: Footers fetched at once.
_PARALLEL: Final = 8
#: Of a card, from its beginning on, where its front matter is.
_CARD_BYTES: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Footer:
    """The relevant part of a parquet footer."""

    #: One row is one event.
    rows: int
    #: The lowest and the highest event id; None where the shard is empty or has no statistics.
    first: int | None
    last: int | None
    #: Names as stored, with their types.
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
        """Whether the shard may have events of the range."""
        if self.first is None or self.last is None:
            return self.rows > 0
        return self.first < events.stop and self.last >= events.start


def _ends(group: Any) -> tuple[int, int] | None:
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema == "event_id":
            found = column.statistics
            if found is None or not found.has_min_max or not isinstance(found.min, int):
                return None
            return found.min, found.max
    return None


def read_footer(path: Path) -> Footer:
    """The footer of a local shard. Raises UnusableDataset for a file that is no parquet."""
    return _parse(path, path.name)


def fetch_footer(hub: HubReader, repository: Repository, file: HubFile) -> Footer | None:
    """The footer of a shard on a hub, without the rest; None where the hub does not give ranges.

    Raises UnusableDataset for a file that is no parquet, and what :class:`HubReader` raises.
    """
    try:
        tail = fetch_tail(hub, repository, file)
    except NoRanges:
        return None
    return _parse(io.BytesIO(tail), file.path)


def _parse(file: Path | io.BytesIO, name: str) -> Footer:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return Footer.of(pq.read_metadata(file))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UnusableDataset(f"{name}: cannot be read as parquet: {error}") from error


def fetch_tail(
    hub: HubReader, repository: Repository, file: HubFile, maximum: int = _MAXIMUM_TAIL_BYTES
) -> bytes:
    """The end of a shard with all of its footer.

    Raises UnusableDataset where there is no footer or a longer one than ``maximum`` bytes, and what
    :meth:`HubReader.read_range` raises.
    """
    length = min(TAIL_BYTES, file.size)
    if length < _ENDING + len(_MAGIC):
        raise UnusableDataset(f"{file.path}: is no parquet file")
    address = repository.address(file.path)
    tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    length = int.from_bytes(tail[-_ENDING : -len(_MAGIC)], "little") + _ENDING
    if tail[-len(_MAGIC) :] != _MAGIC or length > min(file.size, maximum):
        raise UnusableDataset(f"{file.path}: is no parquet file")
    if length > len(tail):
        tail, _ = hub.read_range(address, file.path, file.size - length, file.size)
    return tail


def load_footer(note: Path) -> Footer | None:
    """The footer that :func:`save_footer` wrote, if there is one."""
    try:
        return Footer(**json.loads(note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        # Not there, or of another version: it is fetched again.
        return None


def save_footer(note: Path, footer: Footer) -> None:
    """Write a footer to a file, so that it need not be fetched again."""
    note.parent.mkdir(parents=True, exist_ok=True)
    durable.replace(note, json.dumps(asdict(footer)))


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A dataset config; its name is empty where tables lie in no folder."""

    config: str
    tables: tuple[str, ...]
    shards: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A file of a table. Events are None where its footer does not record them."""

    path: str
    bytes: int
    events: int | None
    first_event: int | None
    last_event: int | None


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table of a config. Columns are named as stored, with the type of each."""

    config: str
    table: str
    bytes: int
    events: int | None
    first_event: int | None
    last_event: int | None
    columns: Mapping[str, str]
    shards: tuple[ShardEntry, ...]


class Catalogue(ABC):
    """The parquet files of a dataset, by path."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes

    @abstractmethod
    def footers(self, paths: Sequence[str]) -> list[Footer | None]:
        """The footer of each file; None where it cannot be read without all of the file."""

    @abstractmethod
    def card(self) -> str:
        """The dataset's card; empty where there is none."""

    def configs(self) -> list[ConfigEntry]:
        """The configs of the dataset, by name. No file is opened."""
        return [
            ConfigEntry(config, tables, len(paths), sum(self.sizes[path] for path in paths))
            for config, tables in layout.configs(self.sizes).items()
            for paths in [[path for table in tables for path in self.shards(table, config)]]
        ]

    def shards(self, table: str, config: str) -> list[str]:
        """The files of a table. Raises UnusableDataset that lists the tables there are."""
        owned = [path for path in self.sizes if config in layout.configs([path])]
        return layout.shards(owned, table, config or None)

    def tables(self, config: str | None, names: Sequence[str] | None = None) -> list[TableEntry]:
        """The tables of a config, the only one if none is named, with all their shards.

        Raises UnusableDataset, with what there is.
        """
        chosen = layout.choose(self.sizes, config)
        there = layout.configs(self.sizes)[chosen]
        return [self._table(chosen, name) for name in (there if names is None else names)]

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
        """The files of a table that may hold events of the range.

        Raises UnusableDataset when some of the events are in none for sure.
        """
        paths = self.shards(table, config)
        if events is None:
            return paths
        footers = dict(zip(paths, self.footers(paths), strict=True))
        wanted = [path for path, footer in footers.items() if footer is None or footer.may_hold(events)]
        _refuse_uncovered(table, events, list(footers.values()))
        return wanted


def _shard(path: str, size: int, footer: Footer | None) -> ShardEntry:
    if footer is None:
        return ShardEntry(path, size, None, None, None)
    return ShardEntry(path, size, footer.rows, footer.first, footer.last)


def _refuse_uncovered(table: str, events: EventRange, footers: Sequence[Footer | None]) -> None:
    """Raise where no shard can have some of the events, by the first and last event of each."""
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
        lacking = f"{missing} are missing (events there: {there})"
        detail = f"table {table} has not all of the events {events}: {lacking}"
        raise UnusableDataset(
            detail, errors=[{"field": "events", "detail": detail}] if missing == events else ()
        )


class LocalCatalogue(Catalogue):
    """The files below a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        super().__init__({path: (directory / path).stat().st_size for path in parquet_files(directory)})

    def footers(self, paths: Sequence[str]) -> list[Footer | None]:
        return [read_footer(self._directory / path) for path in paths]

    def card(self) -> str:
        path = self._directory / CARD
        return path.read_bytes()[:_CARD_BYTES].decode(errors="replace") if path.is_file() else ""


class HubCatalogue(Catalogue):
    """The files of a repository; footers are kept with what was downloaded of it."""

    def __init__(self, hub: HubReader, repository: Repository, store: DownloadStore) -> None:
        self.repository = repository
        self._hub = hub
        self._store = store
        super().__init__(
            {path: file.size for path, file in repository.files.items() if path.endswith(".parquet")}
        )

    def footers(self, paths: Sequence[str]) -> list[Footer | None]:
        with ThreadPoolExecutor(_PARALLEL, "collidium-footers") as threads:
            return list(threads.map(self._footer, paths))

    def card(self) -> str:
        file = self.repository.files.get(CARD)
        if file is None:
            return ""
        address, stop = self.repository.address(CARD), min(file.size, _CARD_BYTES)
        return self._hub.read_range(address, CARD, 0, stop)[0].decode(errors="replace")

    def _footer(self, path: str) -> Footer | None:
        file = self.repository.files[path]
        note = self._store.metadata / "footers" / f"{file.digest}.json"
        if known := load_footer(note):
            return known
        if self._store.has(file):
            footer: Footer | None = read_footer(self._store.path(file))
        else:
            footer = fetch_footer(self._hub, self.repository, file)
        if footer is not None:
            save_footer(note, footer)
        return footer
